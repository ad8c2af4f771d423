package rdmanet_test

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/rdmanet"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// network is a listener with an adapter to dial from.
type network struct {
	listener *rdmanet.Listener
	dialer   *rdmanet.Dialer
}

func newNetwork(t testing.TB, b *testbed.Bed, buffers rdmanet.Buffers) *network {
	t.Helper()
	adapter := func(side int) *nd.Adapter {
		host := b.Server
		if side == 1 {
			host = b.Client
		}
		a, err := nd.NewProvider(host).OpenAdapterAt(b.Addrs[side])
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	config := &rdmanet.ListenConfig{Adapter: adapter(0), Buffers: buffers}
	l, err := config.Listen(context.Background(), netip.AddrPortFrom(b.Addrs[0], 0).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return &network{listener: l, dialer: &rdmanet.Dialer{Adapter: adapter(1), Buffers: buffers}}
}

// pair returns two connected ends.
func (n *network) pair() (dialed, accepted net.Conn, err error) {
	type result struct {
		c   net.Conn
		err error
	}
	ch := make(chan result, 1)
	go func() {
		c, err := n.listener.Accept()
		ch <- result{c, err}
	}()
	dialed, err = n.dialer.DialContext(context.Background(), "rdma", n.listener.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	r := <-ch
	return dialed, r.c, r.err
}

func TestConnIsANetConn(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		n := newNetwork(t, b, rdmanet.Buffers{})
		nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
			c1, c2, err = n.pair()
			if err != nil {
				return nil, nil, nil, err
			}
			return c1, c2, func() { c1.Close(); c2.Close() }, nil
		})
	})
}
