package verbs_test

import (
	"cmp"
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// TestTrafficClassOfConnections: the request of a connection names the traffic class that its program has chosen, so that the other
// side sends with it, too, unless it has chosen another. Nothing else can be chosen once there is an attempt.
func TestTrafficClassOfConnections(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		for _, accepts := range []uint8{0, 0x48} {
			ctx := testbed.Context(t)
			server, client := newSide(t, b, 0, verbs.RC), newSide(t, b, 1, verbs.RC)
			l := must(server.dev.Listen(netip.AddrPortFrom(server.dev.Addr(), 0), 0))(t)
			defer l.Close()
			accepted := make(chan error, 1)
			go func() {
				id, err := l.Request(ctx)
				if err == nil {
					server.id = id
					if accepts != 0 {
						err = id.SetTrafficClass(ctx, accepts)
					}
				}
				if err == nil {
					err = id.Accept(ctx, server.qp, param)
				}
				accepted <- err
			}()
			client.id = must(client.dev.NewID())(t)
			ok(t, client.id.SetTrafficClass(ctx, 0x68))
			ok(t, client.id.Connect(ctx, l.Addr(), client.qp, param))
			ok(t, client.id.Establish())
			ok(t, <-accepted)
			for id, want := range map[*verbs.ID]uint8{client.id: 0x68, server.id: cmp.Or(accepts, 0x68)} {
				a, _, err := id.Attributes(verbs.StateRTR)
				if err != nil || a.AV.TrafficClass != want {
					t.Errorf("traffic class %#x, %v; want %#x", a.AV.TrafficClass, err, want)
				}
			}
			if err := client.id.SetTrafficClass(ctx, 1); !errors.Is(err, verbs.ErrState) {
				t.Errorf("of a connection: %v, want a wrong state", err)
			}
		}
	})
}
