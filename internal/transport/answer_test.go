package transport

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestOnlyAcknowledges: onlyAcknowledges reports true after a whole message, when nothing but an ACK is pending and
// may be held back until the program answers. It reports false where nothing is pending, in the middle of a message,
// and before the answer to a read.
func TestOnlyAcknowledges(t *testing.T) {
	for _, x := range []struct {
		name    string
		op      ring.WROp
		size    int
		packets int // that arrive
		only    bool
	}{
		{"write", ring.OpWrite, 8, 1, true},
		{"nothing", ring.OpWrite, 8, 0, false},
		{"part of a write", ring.OpWrite, 4096, 2, false},
		{"read", ring.OpRead, 8, 1, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, a, b := newPair(t, 1, command.RC)
			c := defaultConnection()
			c.mtu = 1024
			connect(a, b, c)
			key := a.region(0x1000, make([]byte, 4096), allowAll).Key
			remote := b.region(0x5000, make([]byte, 4096), allowAll).Key
			wr := ring.SendWR{ID: 1, Op: x.op, NumSGE: 1, RemoteAddr: 0x5000, RKey: remote}
			wr.SGE[0] = ring.SGE{Addr: 0x1000, Length: uint32(x.size), LKey: key}
			if err := a.send.Post(&wr); err != nil {
				t.Fatal(err)
			}
			a.e.Doorbell(a.q)
			b.q.program = new(Program)
			b.e.Drive(b.q.program)
			var out [8]frame.Out
			if n := a.e.Transmit(0, 0, out[:]); n < x.packets {
				t.Fatalf("sent %d packets, want all of the message", n)
			}
			for i := range x.packets {
				b.e.Receive(0, []frame.In{{Data: flat(&out[i]), Src: a.addr, Dst: b.addr}})
			}
			if got := b.e.onlyAcknowledges(); got != x.only {
				t.Errorf("only acknowledges: %v, want %v", got, x.only)
			}
			b.e.Drive(nil)
			b.e.Transmit(0, 0, out[:])
			b.e.Drive(b.q.program)
			if b.e.onlyAcknowledges() {
				t.Error("after Transmit an acknowledgement is still pending")
			}
		})
	}
}
