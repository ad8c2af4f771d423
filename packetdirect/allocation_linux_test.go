//go:build !race

package packetdirect_test

import (
	"context"
	"fmt"
	"testing"

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
		out, in, ctx := make([]*packetdirect.Buffer, 8), make([]*packetdirect.Buffer, 8), context.Background()
		var failed error
		turn := func() {
			if _, _, err := tx.PostAndDrain(frames, nil); err != nil {
				failed = err
			}
			for sent, got := 0, 0; failed == nil && (sent < 8 || got < 8); {
				_, n, err := tx.PostAndDrain(nil, out[sent:])
				sent += n
				if err == nil && got < 8 {
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
		if n := testing.AllocsPerRun(200, turn); n > 0 && failed == nil {
			failed = fmt.Errorf("%g allocations for 8 frames", n)
		}
		ok(t, failed)
	})
}
