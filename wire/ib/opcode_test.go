package ib

import (
	"maps"
	"testing"
)

// IBA table "OpCode field": the headers that follow the BTH of each opcode.
func TestOpcodeHeaders(t *testing.T) {
	const (
		reth, aeth, atomic, ack, imm, ieth, deth, feth = 16, 4, 28, 8, 4, 4, 8, 4
	)
	want := map[Opcode]int{
		RCSendFirst: 0, RCSendMiddle: 0, RCSendLast: 0, RCSendLastImmediate: imm, RCSendOnly: 0, RCSendOnlyImmediate: imm,
		RCWriteFirst: reth, RCWriteMiddle: 0, RCWriteLast: 0, RCWriteLastImmediate: imm, RCWriteOnly: reth,
		RCWriteOnlyImmediate: reth + imm,
		RCReadRequest:        reth, RCReadResponseFirst: aeth, RCReadResponseMiddle: 0, RCReadResponseLast: aeth, RCReadResponseOnly: aeth,
		RCAcknowledge: aeth, RCAtomicAcknowledge: aeth + ack, RCCompareSwap: atomic, RCFetchAdd: atomic,
		RCSendLastInvalidate: ieth, RCSendOnlyInvalidate: ieth, RCFlush: feth + reth, RCAtomicWrite: reth,
		UCSendFirst: 0, UCSendMiddle: 0, UCSendLast: 0, UCSendLastImmediate: imm, UCSendOnly: 0, UCSendOnlyImmediate: imm,
		UCWriteFirst: reth, UCWriteMiddle: 0, UCWriteLast: 0, UCWriteLastImmediate: imm, UCWriteOnly: reth,
		UCWriteOnlyImmediate: reth + imm,
		UDSendOnly:           deth, UDSendOnlyImmediate: deth + imm, CNP: 0,
	}
	// Annex A14.4: XRC has RC's operations, and an XRCETH in every request but in no response.
	for op, n := range maps.Clone(want) {
		if op.Service() == ServiceRC && op < RCFlush { // those of annex A19 are RC's alone here
			if op < RCReadResponseFirst || op > RCAtomicAcknowledge {
				n += 4
			}
			want[op|0xa0] = n
		}
	}
	for i := range 256 {
		op := Opcode(i)
		n, known := HeaderLength(op)
		w, ok := want[op]
		if n != w || known != ok || op.Known() != ok {
			t.Errorf("%v (%#x): %d bytes, known %v, want %d, %v", op, i, n, known, w, ok)
		}
	}
}

// Every known opcode of a message has exactly one place in it and one direction.
func TestOpcodePlaces(t *testing.T) {
	for i := range 256 {
		op := Opcode(i)
		places := 0
		for _, is := range []bool{op.IsFirst(), op.IsMiddle(), op.IsLast(), op.IsOnly()} {
			if is {
				places++
			}
		}
		if op.Known() != (places == 1) || places > 1 {
			t.Errorf("%v has %d places", op, places)
		}
		if op.IsRequest() && op.IsResponse() || op.Known() && op != CNP && !op.IsRequest() && !op.IsResponse() {
			t.Errorf("%v: request %v, response %v", op, op.IsRequest(), op.IsResponse())
		}
		if op.Starts() != (op.IsFirst() || op.IsOnly()) || op.Ends() != (op.IsLast() || op.IsOnly()) {
			t.Errorf("%v: starts %v, ends %v", op, op.Starts(), op.Ends())
		}
		if op.HasImm() && !op.TakesReceive() {
			t.Errorf("%v has immediate data but takes no receive", op)
		}
	}
}

func TestOpcodeKinds(t *testing.T) {
	for _, c := range []struct {
		op                                              Opcode
		send, write, readResponse, atomic, payload, rcv bool
	}{
		{op: RCSendMiddle, send: true, payload: true, rcv: true},
		{op: RCSendOnlyInvalidate, send: true, payload: true, rcv: true},
		{op: UDSendOnlyImmediate, send: true, payload: true, rcv: true},
		{op: RCWriteFirst, write: true, payload: true},
		{op: RCWriteOnlyImmediate, write: true, payload: true, rcv: true},
		{op: UCWriteLastImmediate, write: true, payload: true, rcv: true},
		{op: UCWriteOnly, write: true, payload: true},
		{op: RCReadRequest},
		{op: RCReadResponseMiddle, readResponse: true, payload: true},
		{op: RCReadResponseOnly, readResponse: true, payload: true},
		{op: RCAcknowledge},
		{op: RCFetchAdd, atomic: true},
		{op: RCCompareSwap, atomic: true},
		{op: RCAtomicAcknowledge},
		{op: RCFlush},
		{op: RCAtomicWrite, payload: true},
		{op: XRCSendLastInvalidate, send: true, payload: true, rcv: true},
		{op: XRCWriteLastImmediate, write: true, payload: true, rcv: true},
		{op: XRCReadRequest},
		{op: XRCReadResponseMiddle, readResponse: true, payload: true},
		{op: XRCFetchAdd, atomic: true},
		{op: XRCAcknowledge},
		{op: CNP},
		{op: 0x15},
	} {
		if c.op.IsSend() != c.send || c.op.IsWrite() != c.write || c.op.IsReadResponse() != c.readResponse || c.op.IsAtomic() != c.atomic ||
			c.op.HasPayload() != c.payload || c.op.TakesReceive() != c.rcv {
			t.Errorf("%v: send %v, write %v, read response %v, atomic %v, payload %v, receive %v", c.op, c.op.IsSend(), c.op.IsWrite(),
				c.op.IsReadResponse(), c.op.IsAtomic(), c.op.HasPayload(), c.op.TakesReceive())
		}
	}
}

func TestOpcodeNames(t *testing.T) {
	for op, want := range map[Opcode]string{
		0x00: "RC SEND First", 0x0b: "RC RDMA WRITE Only with Immediate", 0x0c: "RC RDMA READ Request",
		0x17: "RC SEND Only with Invalidate", 0x1c: "RC FLUSH", 0x1d: "RC ATOMIC WRITE", 0xbc: "XRC opcode 0x1c",
		0x2a: "UC RDMA WRITE Only", 0x64: "UD SEND Only", 0x81: "CNP", 0x15: "RC opcode 0x15", 0xa4: "XRC SEND Only", 0xb5: "XRC opcode 0x15",
		0x44: "RD opcode 0x04",
	} {
		if got := op.String(); got != want {
			t.Errorf("%#x is %q, want %q", uint8(op), got, want)
		}
	}
}
