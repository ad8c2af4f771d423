package device

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestNoRDMA: of an adapter that offers no RDMA (*NetworkDirect = 0) programs get neither queue pairs nor connection ids, by whatever
// way, and it says that it moves no message. Another adapter's go on, and so does the driver itself.
func TestNoRDMA(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	barred := h.add(t, AdapterConfig{Addr: loopback.Addr(), NoRDMA: true})
	p := newProgram(t, h, barred)
	q := p.cq(16)
	at := command.Endpoint{Addr: command.AddrFrom(p.addr)}
	id := func(x *program, adapter uint32) command.Handle {
		t.Helper()
		id, err := x.c.CMCreate(bg, command.CMCreate{Adapter: adapter, Space: command.TCP})
		x.check(err)
		return id
	}
	xrcd, err := p.c.OpenXRCD(bg, command.OpenXRCD{Adapter: barred, Flags: command.XRCDCreate})
	p.check(err)
	pair := func(x *program, kind command.QPType) error {
		r := command.CreateQP{Type: kind, PD: x.pd, SendDepth: 1, RecvDepth: 1, SendSGE: 1, RecvSGE: 1,
			SendCQ: q.q.Handle, RecvCQ: q.q.Handle}
		switch kind {
		case command.XRCInitiator:
			r.RecvDepth, r.RecvSGE, r.RecvCQ = 0, 0, 0
		case command.XRCTarget:
			r = command.CreateQP{Type: kind, XRCD: xrcd}
		}
		_, err := x.c.CreateQP(bg, r)
		return err
	}
	for _, kind := range []command.QPType{command.RC, command.UC, command.UD, command.XRCInitiator, command.XRCTarget} {
		wantCode(t, pair(p, kind), command.Unsupported)
	}
	_, err = p.c.CMCreate(bg, command.CMCreate{Adapter: barred, Space: command.TCP})
	wantCode(t, err, command.Unsupported)
	_, err = p.c.CMBind(bg, id(p, command.AnyAdapter), at)
	wantCode(t, err, command.Unsupported)
	_, err = p.c.CMBind(bg, id(p, command.AnyAdapter), command.Endpoint{})
	wantCode(t, err, command.Unsupported)
	for _, local := range []command.Endpoint{{}, at} {
		p.check(p.c.CMResolveAddr(bg, command.CMResolveAddr{ID: id(p, command.AnyAdapter), Local: local, Remote: at, Timeout: 1000}))
		if e := p.event(command.EventAddressError); e.Status != uint32(command.Unsupported) {
			t.Errorf("resolution ends with %v, want %v", command.Code(e.Status), command.Unsupported)
		}
	}
	list, err := p.c.Adapters(bg)
	p.check(err)
	if i := list[0]; i.MaxMessage != 0 || i.MaxReadResponder != 0 || i.Up != 1 {
		t.Errorf("it is up: %d, and moves messages of %d bytes", i.Up, i.MaxMessage)
	}

	own := newProgramWith(t, h, barred, ClientConfig{OfDriver: true})
	q = own.cq(16)
	own.check(pair(own, command.RC))
	_, err = own.c.CMBind(bg, id(own, barred), at)
	own.check(err)

	// An id that may be on any adapter is on the others.
	open := newProgram(t, h, h.add(t, AdapterConfig{Addr: loopback.Addr()}))
	l := id(open, command.AnyAdapter)
	bound, err := open.c.CMBind(bg, l, command.Endpoint{})
	open.check(err)
	open.check(open.c.CMListen(bg, l, 0))
	g := newHost(t, Config{Seed: 2})
	client := newProgram(t, g, g.add(t, AdapterConfig{Addr: loopback.Addr()}))
	for _, c := range []struct {
		to   netip.Addr
		want command.EventType
	}{{p.addr, command.EventRejected}, {open.addr, command.EventConnectRequest}} {
		client.dial(command.CMConnect{ID: id(client, command.AnyAdapter), QP: client.idleQP().q.Handle,
			Remote: command.Endpoint{Addr: command.AddrFrom(c.to), Port: bound.Port}, Param: usualParam})
		if c.want == command.EventRejected {
			client.event(c.want)
		} else {
			open.event(c.want)
		}
	}
}
