package device

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestWildcardListenerExtends: a listener at :: takes requests on adapters that are added or enabled after it began
// to listen.
func TestWildcardListenerExtends(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	server := newProgram(t, h, h.add(t, AdapterConfig{Addr: loopback.Addr()}))
	l, err := server.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	server.check(err)
	at, err := server.c.CMBind(bg, l, command.Endpoint{})
	server.check(err)
	server.check(server.c.CMListen(bg, l, 0))

	g := newHost(t, Config{Seed: 2})
	client := newProgram(t, g, g.add(t, AdapterConfig{Addr: loopback.Addr()}))
	reach := func(addr netip.Addr, want command.EventType) {
		t.Helper()
		id, err := client.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
		client.check(err)
		to := command.Endpoint{Addr: command.AddrFrom(addr), Port: at.Port}
		client.dial(command.CMConnect{ID: id, QP: client.idleQP().q.Handle, Remote: to, Param: usualParam})
		if want != command.EventConnectRequest {
			client.event(want)
			return
		}
		e := server.event(want)
		if e.Object != l {
			t.Errorf("request of %#x, want %#x", e.Object, l)
		}
		server.check(server.c.Destroy(bg, command.KindCM, e.NewID))
		client.event(command.EventRejected)
	}
	reach(server.addr, command.EventConnectRequest)
	late := loopback.Addr()
	index := h.add(t, AdapterConfig{Addr: late})
	reach(late, command.EventConnectRequest)
	server.check(h.SetAdapterState(index, false))
	reach(late, command.EventUnreachable)
	server.check(h.SetAdapterState(index, true))
	reach(late, command.EventConnectRequest)
	reach(server.addr, command.EventConnectRequest)

	// No other listener may take the port on the new adapter either.
	other, err := server.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	server.check(err)
	_, err = server.c.CMBind(bg, other, command.Endpoint{Addr: command.AddrFrom(late), Port: at.Port})
	wantCode(t, err, command.InUse)
	server.check(server.c.Destroy(bg, command.KindCM, l))
	_, err = server.c.CMBind(bg, other, command.Endpoint{Addr: command.AddrFrom(late), Port: at.Port})
	server.check(err)
}
