package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

func sentPackets(p *program) uint64 {
	return p.host.Snapshot().Adapters[p.adapter].Link.SentPackets
}

// TestConnectingWithoutPackets: CM messages between adapters of one host are passed without packets, unless the path
// or links of their own ask for packets. The connection is made either way.
func TestConnectingWithoutPackets(t *testing.T) {
	for _, c := range []struct {
		name    string
		net     network
		cfg     AdapterConfig
		packets bool
	}{
		{"one host", networks[1], AdapterConfig{}, false},
		{"two hosts", networks[0], AdapterConfig{}, true},
		{"path=wire", networks[1], AdapterConfig{Path: PathWire}, true},
		{"links of their own", networks[3], AdapterConfig{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := pairs(t, c.net, c.cfg)
			for _, p := range []*program{x.a.p, x.b.p} {
				if n := sentPackets(p); n > 0 != c.packets {
					t.Errorf("%d packets were sent; packets wanted: %v", n, c.packets)
				}
				if n := counter(t, p, "CM MADs received"); n == 0 {
					t.Error("the connection manager received nothing")
				}
			}
		})
	}
}

// TestConnectMakesTheID: CMConnect without an id makes one, with the context it is given, and leaves none behind if
// the attempt is refused.
func TestConnectMakesTheID(t *testing.T) {
	x, y := networks[1].make(t, AdapterConfig{})
	_, err := x.c.CMConnect(bg, command.CMConnect{Space: command.TCP, Adapter: x.adapter, Context: 77, QP: 12345})
	wantCode(t, err, command.NotFound)
	if n := x.host.Snapshot().Adapters[x.adapter].Objects.CM; n != 0 {
		t.Errorf("%d ids are left of a refused attempt, want none", n)
	}
	to := command.Endpoint{Addr: command.AddrFrom(y.addr), Port: 9}
	h, err := x.c.CMConnect(bg, command.CMConnect{
		Space: command.TCP, Adapter: x.adapter, Context: 77, QP: x.idleQP().q.Handle, Remote: to, Param: usualParam,
	})
	x.check(err)
	e := x.event(command.EventRejected) // nobody listens
	if e.Object != h || e.Context != 77 {
		t.Errorf("the event is of id %#x with context %d, want %#x and 77", e.Object, e.Context, h)
	}
	if got := e.Local.Addr.IP(); got != x.addr || e.Local.Port == 0 {
		t.Errorf("the local address is %v, port %d, want %v", got, e.Local.Port, x.addr)
	}
}
