package packetdirect_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/race"
	"github.com/softvpi/softvpi/packetdirect"
)

// TestNoAllocation: posting and draining allocate nothing, and waiting neither with a context that does not end.
func TestNoAllocation(t *testing.T) {
	each(t, func(t *testing.T, from, to *packetdirect.Adapter) {
		rx := receives(t, to, 64, packetdirect.Filter{Dst: to.MAC(), EtherType: etherType})
		tx := must(from.NewTransmitQueue(packetdirect.QueueConfig{}))(t)
		frames := must(from.NewPool(8, 0))(t).Buffers()
		for _, b := range frames {
			b.Set(frame(to.MAC(), from.MAC(), 100))
		}
		allocatesNothing(t, tx, frames, rx.ReceiveQueue, 8)
	})
}

// TestNoAllocation_Large is TestNoAllocation of large packets, which come by a Spread.
func TestNoAllocation_Large(t *testing.T) {
	each(t, func(t *testing.T, from, to *packetdirect.Adapter) {
		rx := receives(t, to, 64)
		s := must(to.NewSpread(packetdirect.SpreadConfig{Queues: []*packetdirect.ReceiveQueue{rx.ReceiveQueue}}))(t)
		must(s.AddFilter(packetdirect.Filter{Dst: to.MAC(), Protocol: 6}))(t)
		tx := must(from.NewTransmitQueue(packetdirect.QueueConfig{Large: true}))(t)
		frames := must(from.NewPool(2, 1<<14))(t).Buffers()
		for _, b := range frames {
			head := segmentHead(to.MAC(), from.MAC())
			copy(b.Room(), head)
			b.SetLarge(len(head)+4000, len(head), 1000)
		}
		allocatesNothing(t, tx, frames, rx.ReceiveQueue, 8)
	})
}

// allocatesNothing sends frames, which arrive as so many, again and again.
func allocatesNothing(t *testing.T, tx *packetdirect.TransmitQueue, frames []*packetdirect.Buffer, rx *packetdirect.ReceiveQueue,
	arrive int) {
	t.Helper()
	out, in, ctx := make([]*packetdirect.Buffer, len(frames)), make([]*packetdirect.Buffer, arrive), context.Background()
	var failed error
	turn := func() {
		if _, _, err := tx.PostAndDrain(frames, nil); err != nil {
			failed = err
		}
		for sent, got := 0, 0; failed == nil && (sent < len(out) || got < len(in)); {
			_, n, err := tx.PostAndDrain(nil, out[sent:])
			sent += n
			if err == nil && got < len(in) {
				if err = rx.Wait(ctx); err == nil {
					_, n, err = rx.PostAndDrain(nil, in[got:])
					got += n
				}
			}
			failed = err
		}
		if _, _, err := rx.PostAndDrain(in, nil); err != nil {
			failed = err
		}
	}
	if n := testing.AllocsPerRun(200, turn); n > 0 && failed == nil && !race.Detector {
		failed = fmt.Errorf("%g allocations for %d frames", n, len(frames))
	}
	ok(t, failed)
}
