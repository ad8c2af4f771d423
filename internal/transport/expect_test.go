package transport

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// midway posts a request of n bytes on a flow with an MTU of 1024 and carries so many
// packets to the responder, and so many answers back.
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

// pass carries the first n packets of a turn.
func (f *flow) pass(from, to *host, n int) {
	if n == 0 {
		return
	}
	k := from.e.Transmit(f.now, f.w.out)
	in := make([]frame.In, 0, n)
	for i := range f.w.out[:min(k, n)] {
		o := &f.w.out[i]
		in = append(in, frame.In{Data: flat(o), Src: o.Route.Src, Dst: o.Route.Dst})
	}
	to.e.Receive(f.now, in)
}

// memory is the region of an end.
func (f *flow) memory(x *end) []byte { return f.region(x).Bytes }

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

// What is expected is the packets of a message in progress but for the last one.
func TestExpected(t *testing.T) {
	const kb = 1024
	for _, c := range []struct {
		name             string
		op               ring.WROp
		bytes            int
		packets, answers int
		opcode           ib.Opcode
		psn, at, n       int // n bytes at byte at of the message; -1: nothing is said
	}{
		{"write, after the first", ring.OpWrite, 20 * kb, 1, 0, ib.RCWriteMiddle, 1, kb, 18 * kb},
		{"write, last is short", ring.OpWrite, 20*kb - 1000, 1, 0, ib.RCWriteMiddle, 1, kb, 18 * kb},
		{"write, with immediate", ring.OpWriteImm, 20 * kb, 5, 0, ib.RCWriteMiddle, 5, 5 * kb, 14 * kb},
		{"write, the last alone is missing", ring.OpWrite, 20 * kb, 19, 0, 0, 0, 0, -1},
		{"write, whole: another one begins", ring.OpWrite, 20 * kb, 20, 0, 0, 0, 0, 0},
		{"write, whole and short", ring.OpWrite, kb, 1, 0, 0, 0, 0, -1},
		{"send: nobody knows its length", ring.OpSend, 20 * kb, 5, 0, 0, 0, 0, -1},
		{"read, after the first", ring.OpRead, 20 * kb, 1, 1, ib.RCReadResponseMiddle, 1, kb, 18 * kb},
		{"read, to the end of a chunk", ring.OpRead, 100 * kb, 2, 3, ib.RCReadResponseMiddle, 3, 3 * kb, (readChunk - 4) * kb},
		{"read, the last of a chunk is missing", ring.OpRead, 65 * kb, 2, readChunk - 1, 0, 0, 0, -1},
		{"read, a chunk begins", ring.OpRead, 100 * kb, 2, readChunk, 0, 0, 0, 0},
		{"read, whole", ring.OpRead, 20 * kb, 1, 20, 0, 0, 0, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, to := midway(t, c.op, c.bytes, c.packets, c.answers)
			var x frame.Expected
			route := to.e.Expected(&x)
			if (route != nil) != (c.n >= 0) || route != nil && route != to.q.route {
				t.Fatalf("expected %v of %d bytes", route, len(x.Memory))
			}
			if c.n <= 0 {
				if route != nil && len(x.Memory) != 0 {
					t.Fatalf("%d bytes expected", len(x.Memory))
				}
				return
			}
			first := ib.PSN(defaultConnection().psn[0])
			want := frame.Expected{Opcode: uint8(c.opcode), QPN: to.q.num, PSN: uint32(first) + uint32(c.psn), Size: kb}
			mem := x.Memory
			x.Memory = nil
			if x.Opcode != want.Opcode || x.QPN != want.QPN || x.PSN != want.PSN || x.Size != want.Size {
				t.Errorf("expected %+v, want %+v", x, want)
			}
			if place := f.memory(to)[c.at:]; len(mem) != c.n || &mem[0] != &place[0] {
				t.Errorf("%d bytes at %p, want %d at %p", len(mem), &mem[0], c.n, &place[0])
			}
		})
	}
}

// Memory that the message must not reach any more is not written to.
func TestNothingIsExpectedOfWhatIsGone(t *testing.T) {
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
			var x frame.Expected
			if to.e.Expected(&x) == nil {
				t.Fatal("nothing expected in the middle of a write")
			}
			c.end(f)
			if to.e.Expected(&x) != nil {
				t.Errorf("%d bytes expected", len(x.Memory))
			}
		})
	}
}
