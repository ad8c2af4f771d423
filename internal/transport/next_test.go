package transport

import (
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// midway posts a request of n bytes on a flow with an MTU of 1024, carries the given numbers of packets to the
// responder and of answers back, and returns the end that is in the middle of receiving a message.
func midway(t *testing.T, op ring.WROp, n, packets, answers int) (f *flow, to *end) {
	f = newFlow(t, 1024, n, op)
	if f.recv {
		f.b.postRecv(ring.RecvWR{NumSGE: 1, SGE: f.rr})
	}
	f.a.post(f.wr)
	f.pass(f.a.host, f.b.host, packets)
	f.pass(f.b.host, f.a.host, answers)
	if answers > 0 {
		return f, f.a
	}
	return f, f.b
}

// pass carries the first n packets that from sends in one turn, and loses the rest.
func (f *flow) pass(from, to *host, n int) {
	if n == 0 {
		return
	}
	k := from.e.Transmit(f.now, 0, f.w.out)
	in := make([]frame.In, 0, n)
	for i := range f.w.out[:min(k, n)] {
		o := &f.w.out[i]
		in = append(in, frame.In{Data: flat(o), Src: o.Route.Src, Dst: o.Route.Dst})
	}
	to.e.Receive(f.now, in)
}

// memory returns the bytes of an end's region.
func (f *flow) memory(x *end) []byte { return f.region(x).Bytes }

// region returns the region of an end that the flow's request names.
func (f *flow) region(x *end) *memory.Region {
	at, key := f.wr.RemoteAddr, f.wr.RKey
	if x == f.a {
		at, key = f.wr.SGE[0].Addr, f.wr.SGE[0].LKey
	}
	span, err := x.mem.Remote(testPD, x.q.num, key, at, 8, memory.RemoteWrite)
	if err != nil {
		x.t.Fatal(err)
	}
	return span.Region
}

// TestNext: in the middle of a message, Next describes its remaining packets but the last: opcode, PSN, and the
// memory they belong to. Of a send it describes what its receive has room for; where no such packet is missing it
// reports false.
func TestNext(t *testing.T) {
	const kb = 1024
	for _, c := range []struct {
		name             string
		op               ring.WROp
		bytes            int
		packets, answers int
		opcode           ib.Opcode
		psn, at, n       int // n bytes at byte at of the message; -1: Next reports false
	}{
		{"write, after the first", ring.OpWrite, 20 * kb, 1, 0, ib.RCWriteMiddle, 1, kb, 18 * kb},
		{"write, last is short", ring.OpWrite, 20*kb - 1000, 1, 0, ib.RCWriteMiddle, 1, kb, 18 * kb},
		{"write, with immediate", ring.OpWriteImm, 20 * kb, 5, 0, ib.RCWriteMiddle, 5, 5 * kb, 14 * kb},
		{"write, the last alone is missing", ring.OpWrite, 20 * kb, 19, 0, 0, 0, 0, -1},
		{"write, whole", ring.OpWrite, 20 * kb, 20, 0, 0, 0, 0, -1},
		{"write, whole and short", ring.OpWrite, kb, 1, 0, 0, 0, 0, -1},
		{"send, after the first", ring.OpSend, 20 * kb, 1, 0, ib.RCSendMiddle, 1, kb, 19 * kb},
		{"send, in the middle", ring.OpSend, 20 * kb, 5, 0, ib.RCSendMiddle, 5, 5 * kb, 15 * kb},
		{"send, whole", ring.OpSend, 20 * kb, 20, 0, 0, 0, 0, -1},
		{"read, after the first", ring.OpRead, 20 * kb, 1, 1, ib.RCReadResponseMiddle, 1, kb, 18 * kb},
		{"read, the last is missing", ring.OpRead, 20 * kb, 1, 19, 0, 0, 0, -1},
		{"read, whole", ring.OpRead, 20 * kb, 1, 20, 0, 0, 0, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, to := midway(t, c.op, c.bytes, c.packets, c.answers)
			var x frame.Next
			if is := to.e.Next(&x, &frame.In{}); is != (c.n >= 0) {
				t.Fatalf("Next reports %v, %d bytes", is, len(x.Memory))
			}
			if c.n < 0 {
				return
			}
			var head [8]byte
			binary.NativeEndian.PutUint64(head[:], x.Head)
			first := ib.PSN(defaultConnection().psn[0])
			if bth := ib.BTH(append(head[:], 0, 0, 0, 0)); bth.Opcode() != c.opcode || uint32(bth.DestQP()) != to.q.num ||
				bth.PadCount() != 0 ||
				x.PSN != first.Add(uint32(c.psn)) || x.Size != kb || x.Src != to.q.route.Dst {
				t.Errorf("Next describes %+v with head % x", x, head)
			}
			place := f.memory(to)[c.at:]
			if len(x.Memory) != c.n || &x.Memory[0] != &place[0] {
				t.Errorf("%d bytes at %p, want %d at %p", len(x.Memory), &x.Memory[0], c.n, &place[0])
			}
		})
	}
}

// TestNothingIsNextOfWhatIsGone: Next describes nothing once the message's region or queue pair is gone, so that its
// memory is no longer written to.
func TestNothingIsNextOfWhatIsGone(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(f *flow)
	}{
		{"region", func(f *flow) {
			if err := f.b.mem.Deregister(f.region(f.b).Key); err != nil {
				t.Fatal(err)
			}
		}},
		{"queue pair in error", func(f *flow) {
			f.b.modify(command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil)
		}},
		{"queue pair reset", func(f *flow) {
			f.b.modify(command.ModifyQP{Mask: command.MaskState, State: command.Reset}, nil)
		}},
		{"queue pair destroyed", func(f *flow) { f.b.e.Destroy(0, f.b.q) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, to := midway(t, ring.OpWrite, 20*1024, 5, 0)
			var x frame.Next
			if !to.e.Next(&x, &frame.In{}) {
				t.Fatal("nothing is next in the middle of a write")
			}
			c.end(f)
			if to.e.Next(&x, &frame.In{}) {
				t.Errorf("Next describes %d bytes, want nothing", len(x.Memory))
			}
		})
	}
}

// TestNextOfAnotherQueuePair: if the packet at hand plainly continues the message of a queue pair other than the one
// that received last, Next describes that message. The packet is not checked yet, so every field that could differ
// must agree.
func TestNextOfAnotherQueuePair(t *testing.T) {
	f, _ := midway(t, ring.OpWrite, 20*1024, 5, 0)
	a, b := f.a.host.qp(command.RC, QPConfig{}), f.b.host.qp(command.RC, QPConfig{})
	connect(a, b, defaultConnection())
	place, fresh := f.memory(f.b)[5*1024:], f.a.q.req.una.Add(5)
	a.post(f.wr)
	f.pass(a.host, b.host, 1)
	if b.e.received != b.q {
		t.Fatal("the other queue pair is not the one that received last")
	}
	packet := make([]byte, ib.BTHLen+1024)
	ib.BTH(packet).Encode(ib.RCWriteMiddle, false, true, 0, f.b.q.pkey, ib.QPN(f.b.q.num), fresh)
	var x frame.Next
	if !b.e.Next(&x, &frame.In{Data: packet}) {
		t.Fatal("nothing is next")
	}
	if &x.Memory[0] != &place[0] || x.PSN != fresh || x.Head != binary.NativeEndian.Uint64(packet) {
		t.Errorf("next is %+v, want PSN %v at %p", x, fresh, &place[0])
	}
	for name, change := range map[string]func(ib.BTH){
		"another partition":   func(b ib.BTH) { b.Encode(ib.RCWriteMiddle, false, true, 0, f.b.q.pkey^2, b.DestQP(), fresh) },
		"a pad":               func(b ib.BTH) { b.Encode(ib.RCWriteMiddle, false, true, 3, f.b.q.pkey, b.DestQP(), fresh) },
		"another version":     func(b ib.BTH) { b[1] |= 1 },
		"another message":     func(b ib.BTH) { b[0] = byte(ib.RCSendMiddle) },
		"nobody's":            func(b ib.BTH) { b.Encode(ib.RCWriteMiddle, false, true, 0, f.b.q.pkey, 0x7777, fresh) },
		"an answer to a read": func(b ib.BTH) { b[0] = byte(ib.RCReadResponseMiddle) },
	} {
		other := append([]byte(nil), packet...)
		if change(ib.BTH(other)); b.e.Next(&x, &frame.In{Data: other}) {
			t.Errorf("%s: Next describes %d bytes, want nothing", name, len(x.Memory))
		}
	}
}

// TestLeadOfSeveral: Lead cuts a batch where at least four packets of another queue pair's message begin.
func TestLeadOfSeveral(t *testing.T) {
	const w, s = ib.RCWriteMiddle, ib.RCSendMiddle
	for _, c := range []struct {
		name string
		ops  []ib.Opcode
		to   []byte // low bytes of QP numbers
		want int
	}{
		{"another's write", []ib.Opcode{w, w, w, w, w, w}, []byte{1, 1, 2, 2, 2, 2}, 2},
		{"too few of it", []ib.Opcode{w, w, w, w, w}, []byte{1, 1, 2, 2, 2}, 5},
		{"it ends too soon", []ib.Opcode{w, w, w, w, w, w}, []byte{1, 1, 2, 2, 2, 1}, 6},
		{"behind an acknowledgement", []ib.Opcode{ib.RCAcknowledge, s, s, s, s}, []byte{1, 2, 2, 2, 2}, 1},
		{"of the same one", []ib.Opcode{ib.RCAcknowledge, s, s, s, s}, []byte{1, 1, 1, 1, 1}, 5},
		{"another's acknowledgements", []ib.Opcode{w, ib.RCAcknowledge, ib.RCAcknowledge, ib.RCAcknowledge, ib.RCAcknowledge},
			[]byte{1, 2, 2, 2, 2}, 5},
	} {
		in := make([]frame.In, 0, len(c.ops))
		for i, op := range c.ops {
			in = append(in, leadPacket(op))
			in[i].Data[7] = c.to[i]
		}
		if got := Lead(in); got != c.want {
			t.Errorf("%s: Lead is %d of %d packets, want %d", c.name, got, len(in), c.want)
		}
	}
}

func leadPacket(op ib.Opcode) frame.In {
	data := make([]byte, ib.BTHLen+16)
	data[0] = byte(op)
	return frame.In{Data: data}
}

// TestLead: Lead cuts a batch behind the first packet of a message if at least three middle packets follow.
func TestLead(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []ib.Opcode
		want int
	}{
		{"none", nil, 0},
		{"a long write", []ib.Opcode{ib.RCWriteFirst, ib.RCWriteMiddle, ib.RCWriteMiddle, ib.RCWriteMiddle, ib.RCWriteLast}, 1},
		{"a long send behind the end of another", []ib.Opcode{ib.RCSendMiddle, ib.RCSendLast, ib.RCSendFirst, ib.RCSendMiddle,
			ib.RCSendMiddle, ib.RCSendMiddle}, 3},
		{"an answer", []ib.Opcode{ib.RCReadResponseFirst, ib.RCReadResponseMiddle, ib.RCReadResponseMiddle, ib.RCReadResponseMiddle}, 1},
		{"a short write", []ib.Opcode{ib.RCWriteFirst, ib.RCWriteMiddle, ib.RCWriteMiddle, ib.RCWriteLast}, 4},
		{"the middle of one", []ib.Opcode{ib.RCWriteMiddle, ib.RCWriteMiddle, ib.RCWriteMiddle, ib.RCWriteMiddle, ib.RCWriteMiddle}, 5},
		{"single ones", []ib.Opcode{ib.RCSendOnly, ib.RCSendOnly, ib.RCSendOnly, ib.RCSendOnly}, 4},
	} {
		in := make([]frame.In, 0, len(c.ops))
		for _, op := range c.ops {
			in = append(in, leadPacket(op))
		}
		if got := Lead(in); got != c.want {
			t.Errorf("%s: Lead is %d of %d packets, want %d", c.name, got, len(in), c.want)
		}
		if len(in) > 0 {
			in[0].Raw = true
			if got := Lead(in); got != len(in) {
				t.Errorf("%s as frames: %d of %d", c.name, got, len(in))
			}
		}
	}
	short := []frame.In{{}, {Data: []byte{0}}, {}, {}, {}}
	if got := Lead(short); got != len(short) {
		t.Errorf("packets without a BTH: %d of %d", got, len(short))
	}
}
