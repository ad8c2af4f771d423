package transport

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// shape describes packets by opcode and length with the ICRC, and runs of equal ones by their number.
func shape(packets [][]byte) (s []string) {
	run := 0
	for i, p := range packets {
		name := fmt.Sprintf("%v %d", ib.Opcode(p[0]), len(p)+ib.ICRCLen)
		if run++; i+1 < len(packets) && p[0] == packets[i+1][0] && len(p) == len(packets[i+1]) {
			continue
		}
		s, run = append(s, fmt.Sprintf("%d x %s", run, name)), 0
	}
	return s
}

// TestPieces_OneLength: where the link joins packets of one length, those of short writes are, each being a message of its own.
// Elsewhere, and where a message as such means something to its receiver, messages are whole.
func TestPieces_OneLength(t *testing.T) {
	whole := []string{"1 x RC RDMA WRITE First 1056", "2 x RC RDMA WRITE Middle 1040", "1 x RC RDMA WRITE Last 1040"}
	for _, c := range []struct {
		name          string
		op            ring.WROp
		typ           command.QPType
		size          int
		whole         bool  // the link sends packets singly
		depth         uint8 // reads that may be outstanding, if not few
		there, answer []string
	}{
		{name: "write", op: ring.OpWrite, size: 4096, there: []string{"4 x RC RDMA WRITE Only 1056"}},
		{name: "write with a short end", op: ring.OpWrite, size: 1500,
			there: []string{"1 x RC RDMA WRITE Only 1056", "1 x RC RDMA WRITE Only 508"}},
		{name: "longest write", op: ring.OpWrite, size: splitMost * 1024, there: []string{"16 x RC RDMA WRITE Only 1056"}},
		{name: "longer write", op: ring.OpWrite, size: splitMost*1024 + 1, there: []string{"1 x RC RDMA WRITE First 1056",
			"15 x RC RDMA WRITE Middle 1040", "1 x RC RDMA WRITE Last 20"}},
		{name: "single packets", op: ring.OpWrite, size: 4096, whole: true, there: whole},
		{name: "immediate", op: ring.OpWriteImm, size: 2048, there: []string{"1 x RC RDMA WRITE First 1056",
			"1 x RC RDMA WRITE Last with Immediate 1044"}},
		{name: "unreliable", op: ring.OpWrite, typ: command.UC, size: 2048, there: []string{"1 x UC RDMA WRITE First 1056",
			"1 x UC RDMA WRITE Last 1040"}},
		{name: "send", op: ring.OpSend, size: 2048, there: []string{"1 x RC SEND First 1040", "1 x RC SEND Last 1040"}},
		{name: "read", op: ring.OpRead, size: 4096, there: []string{"1 x RC RDMA READ Request 32"},
			answer: []string{"1 x RC RDMA READ Response First 1044", "2 x RC RDMA READ Response Middle 1040",
				"1 x RC RDMA READ Response Last 1044"}},
		{name: "one of many reads", op: ring.OpRead, size: 4096, depth: pairsFrom, there: []string{"2 x RC RDMA READ Request 32"},
			answer: []string{"1 x RC RDMA READ Response First 1044", "1 x RC RDMA READ Response Last 1044",
				"1 x RC RDMA READ Response First 1044", "1 x RC RDMA READ Response Last 1044"}},
		{name: "one of many reads with an odd number of packets", op: ring.OpRead, size: 2049, depth: MaxReadAtomic,
			there: []string{"2 x RC RDMA READ Request 32"}, answer: []string{"1 x RC RDMA READ Response First 1044",
				"1 x RC RDMA READ Response Last 1044", "1 x RC RDMA READ Response Only 24"}},
		{name: "one of many longer reads", op: ring.OpRead, size: pairsMost*1024 + 1, depth: MaxReadAtomic,
			there: []string{"1 x RC RDMA READ Request 32"}, answer: []string{"1 x RC RDMA READ Response First 1044",
				"7 x RC RDMA READ Response Middle 1040", "1 x RC RDMA READ Response Last 24"}},
		{name: "the longest of many short reads", op: ring.OpRead, size: pairsMost * 1024, depth: MaxReadAtomic,
			there: []string{"4 x RC RDMA READ Request 32"}},
		{name: "one of many reads in single packets", op: ring.OpRead, size: 2048, depth: MaxReadAtomic, whole: true,
			there: []string{"1 x RC RDMA READ Request 32"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.typ == 0 {
				c.typ = command.RC
			}
			con := defaultConnection()
			con.bursts = !c.whole
			con.depth = max(con.depth, c.depth)
			from, to := pattern(c.size, 5), pattern(c.size, 9)
			a, b := newHost(t, nil, "10.0.0.1", Config{}), newHost(t, nil, "10.0.0.2", Config{FirstQPN: 0x100})
			x, y := a.qp(c.typ, QPConfig{}), b.qp(c.typ, QPConfig{})
			connect(x, y, con)
			ra, rb := a.region(0x10000, from, allowAll), b.region(0x90000, to, allowAll)
			wr := ring.SendWR{Op: c.op, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: 0x90000, RKey: rb.Key}
			wr.SGE[0] = ring.SGE{Addr: 0x10000, Length: uint32(c.size), LKey: ra.Key}
			if takesReceive(c.op) {
				r := ring.RecvWR{NumSGE: 1}
				r.SGE[0] = ring.SGE{Addr: 0x90000, Length: uint32(c.size), LKey: rb.Key}
				y.postRecv(r)
			}
			x.post(wr)
			there, back := exchangeEach(a, b)
			if got := shape(there); !slices.Equal(got, c.there) {
				t.Errorf("sends %q, want %q", got, c.there)
			}
			if got := shape(back); c.answer != nil && !slices.Equal(got, c.answer) {
				t.Errorf("is answered by %q, want %q", got, c.answer)
			}
			if !bytes.Equal(from, to) {
				t.Error("the data is not there")
			}
			if len(a.comps) != 1 || a.comps[0].Status != ring.Success || a.comps[0].ByteLen != uint32(c.size) {
				t.Errorf("completions %+v, want one of %d bytes", a.comps, c.size)
			}
			if c.typ == command.RC && x.q.req.ssn != y.q.resp.msn {
				t.Errorf("the requester counts %d messages, the responder %d", x.q.req.ssn, y.q.resp.msn)
			}
			if c.op != ring.OpWrite || c.typ != command.RC || c.size > 4096 { // which is more than a part of the window
				return
			}
			for i, p := range there { // one ACK for the whole
				if asks := ib.BTH(p).AckReq(); asks != (i == len(there)-1) {
					t.Errorf("packet %d of %d requests an ACK: %v", i, len(there), asks)
				}
			}
		})
	}
}

// exchangeEach carries packets both ways until there are none, and returns those of each way.
func exchangeEach(a, b *host) (there, back [][]byte) {
	out := make([]frame.Out, 128)
	carry := func(x, y *host) (sent [][]byte) {
		n := x.e.Transmit(1, 0, out)
		var in []frame.In
		for i := range out[:n] {
			sent = append(sent, flat(&out[i]))
			in = append(in, frame.In{Data: flat(&out[i]), Src: x.addr, Dst: y.addr})
		}
		y.e.Receive(1, in)
		y.drain(1)
		return sent
	}
	for {
		x := carry(a, b)
		y := carry(b, a)
		if len(x)+len(y) == 0 {
			return there, back
		}
		there, back = append(there, x...), append(back, y...)
	}
}

// TestPieces_Credits: a send behind a write that is several messages on the wire uses its credit like one behind a write that is one:
// the messages of the write count on both sides (IBA 9.7.7.2).
func TestPieces_Credits(t *testing.T) {
	for _, bursts := range []bool{false, true} {
		con := defaultConnection()
		con.bursts, con.flow = bursts, 1
		a, b := newHost(t, nil, "10.0.0.1", Config{}), newHost(t, nil, "10.0.0.2", Config{FirstQPN: 0x100})
		x, y := a.qp(command.RC, QPConfig{}), b.qp(command.RC, QPConfig{})
		connect(x, y, con)
		ra, rb := a.region(0x10000, make([]byte, 4096), allowAll), b.region(0x90000, make([]byte, 4096), allowAll)
		post := func(op ring.WROp) {
			wr := ring.SendWR{Op: op, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: 0x90000, RKey: rb.Key}
			wr.SGE[0] = ring.SGE{Addr: 0x10000, Length: 4096, LKey: ra.Key}
			x.post(wr)
		}
		receive := func() {
			r := ring.RecvWR{NumSGE: 1}
			r.SGE[0] = ring.SGE{Addr: 0x90000, Length: 4096, LKey: rb.Key}
			y.postRecv(r)
		}
		receive()
		receive()
		post(ring.OpSend) // brings the number of receives back
		exchangeEach(a, b)
		for range 5 {
			post(ring.OpWrite)
		}
		exchangeEach(a, b)
		post(ring.OpSend)
		if q := x.q; q.current() == nil || q.mustProbe(q.current()) {
			t.Errorf("bursts %v: the send has no credit: SSN %d, limit %d", bursts, q.req.ssn, q.req.credit.lsn)
		}
		exchangeEach(a, b)
		post(ring.OpSend)
		if q := x.q; q.current() == nil || !q.mustProbe(q.current()) {
			t.Errorf("bursts %v: a send without a receive has a credit: SSN %d, limit %d", bursts, q.req.ssn, q.req.credit.lsn)
		}
	}
}
