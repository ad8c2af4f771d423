package transport

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// splitter passes on packets with their payload apart from their headers and pad.
type splitter struct {
	sim.Engine
	split int
}

func (s *splitter) Receive(now clock.Time, in []frame.In) {
	for i := range in {
		d := in[i].Data
		headers, _ := ib.HeaderLength(ib.BTH(d).Opcode())
		from, to := ib.BTHLen+headers, len(d)-ib.BTH(d).PadCount()
		if from < to {
			in[i].Payload = bytes.Clone(d[from:to])
			in[i].Data = append(d[:from:from], d[to:]...)
			s.split++
		}
	}
	s.Engine.Receive(now, in)
}

// TestReceive_HeadersApartFromPayload: connected queue pairs take packets whose payload is not behind their headers,
// whatever the headers, the position in the message and the pad.
func TestReceive_HeadersApartFromPayload(t *testing.T) {
	for _, op := range []ring.WROp{ring.OpSend, ring.OpSendImm, ring.OpWrite, ring.OpWriteImm, ring.OpRead} {
		for _, length := range []int{1, 1022, 1024, 5*1024 + 3} {
			t.Run(fmt.Sprint(op, " of ", length), func(t *testing.T) {
				n, a, b := newPair(t, 1, command.RC)
				connect(a, b, defaultConnection())
				var to [2]*splitter
				for i, x := range []*end{a, b} {
					to[i] = &splitter{Engine: x.port.Engine}
					x.port.Engine = to[i]
				}
				near, far := pattern(regionSize, 1), pattern(regionSize, 2)
				a.region(regionAt, near, allowAll)
				b.region(regionAt, far, allowAll)
				from, got, reader := near, far, to[1]
				if op == ring.OpRead {
					from, got, reader = far, near, to[0]
				}
				want := bytes.Clone(from[:length])
				b.postRecv(ring.RecvWR{NumSGE: 1, SGE: b.sges(regionAt, regionSize, b.key())})
				a.do(op, length)
				n.Pass(time.Second)
				if len(a.comps) != 1 || a.comps[0].Status != ring.Success || b.e.counters.Malformed+a.e.counters.Malformed != 0 {
					t.Fatalf("completions %v; malformed: %d and %d", a.comps, a.e.counters.Malformed, b.e.counters.Malformed)
				}
				if packets := (length + 1023) / 1024; reader.split != packets || !bytes.Equal(got[:length], want) {
					t.Errorf("%d packets came apart, want %d; the data is right: %v", reader.split, packets, bytes.Equal(got[:length], want))
				}
			})
		}
	}
}
