package device

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// speaks is how an agent speaks DCBX.
func speaks(willing bool, change func(*dcb.Local8021Q)) dcb.Config {
	c := dcb.Config{Transmit: dcb.All, Receive: dcb.All, DCBX: true, Local8021Q: dcb.Local8021Q{Willing: willing, Settings: qos.Defaults()}}
	if change != nil {
		change(&c.Local8021Q)
	}
	return c
}

// lldpOf returns what the agent of an adapter's port knows.
func (p *program) lldpOf() *LLDPStatus { return p.host.Overview().Adapters[p.adapter].LLDP }

// priorities returns how an adapter's port treats priorities.
func (p *program) priorities() *PriorityStatus {
	return p.host.Overview().Adapters[p.adapter].Priorities
}

// agreeOn checks that two ports agree and work by it, that one that stops says so to the other, and that they agree again.
func agreeOn(t *testing.T, a, b *program) {
	t.Helper()
	pfc := func(p *program, want uint8, from qos.Origin) {
		t.Helper()
		await.Eventually(t, fmt.Sprintf("PFC of %s is %#x from the %v", p.addr, want, from), func() bool {
			o := p.priorities().Operative
			return o.PFC == want && o.PFCFrom == from
		})
	}
	a.check(a.host.SetLLDP(a.adapter, speaks(false, func(l *dcb.Local8021Q) {
		l.Settings.PFC, l.ChosenPFC, l.ChosenETS = 8, true, true
		shares := [8]qos.Algorithm{qos.Enhanced, qos.Enhanced}
		l.Settings.ETS = qos.ETS{Class: [8]uint8{3: 1}, Algorithm: shares, Bandwidth: [8]uint8{40, 60}}
	})))
	b.check(b.host.SetLLDP(b.adapter, speaks(true, nil)))
	pfc(b, 8, qos.FromPeer)
	pfc(a, 8, qos.FromLocal)
	if x := b.priorities().Traffic; x.Class[3] != 1 || x.Weight != [8]uint8{40, 60} || x.Strict != 0xfc || x != a.priorities().Traffic {
		t.Errorf("the port divides its wire by %+v", x)
	}
	s := b.lldpOf()
	if len(s.Neighbours) != 1 || s.DCBX.State != dcb.Agreed || !s.Running || s.Deaf != nil || s.Counters.FramesIn == 0 {
		t.Errorf("%+v", s)
	}
	a.check(a.host.SetLLDP(a.adapter, speaks(false, func(l *dcb.Local8021Q) { l.Settings.PFC, l.ChosenPFC = 0x28, true })))
	pfc(b, 0x28, qos.FromPeer)
	a.check(a.host.SetAdapterState(a.adapter, false))
	pfc(b, 0, qos.FromDefault)
	if x := b.priorities().Traffic; x.Class != [8]uint8{} || x.Weight != [8]uint8{100} {
		t.Errorf("after a shutdown the port divides its wire by %+v", x)
	}
	if s := b.lldpOf(); len(s.Neighbours) != 0 || s.Counters.Shutdowns != 1 {
		t.Errorf("after a shutdown: %+v", s)
	}
	if s := a.lldpOf(); s.Running {
		t.Errorf("one that is disabled: %+v", s)
	}
	a.check(a.host.SetAdapterState(a.adapter, true))
	pfc(b, 0x28, qos.FromPeer)
	b.check(b.host.SetLLDP(b.adapter, dcb.Config{}))
	pfc(b, 0, qos.FromDefault)
	if s := b.lldpOf(); s.Running || len(s.Neighbours) != 0 {
		t.Errorf("one that is off: %+v", s)
	}
	await.Eventually(t, "the other hears that it is off", func() bool { return a.lldpOf().Counters.Shutdowns == 1 })
}

// TestLLDP_Datagrams: the ports of two processes agree by LLDP, at once and whenever something changes.
func TestLLDP_Datagrams(t *testing.T) {
	t.Parallel()
	a, b := whole{"datagrams", overDatagrams}.on(stationsOf(0, false)).make(t, AdapterConfig{})
	agreeOn(t, a, b)
}

// TestLLDP_Interfaces: so they do by interfaces, beside a network stack.
func TestLLDP_Interfaces(t *testing.T) {
	systemtest.Mark(t)
	a, b := whole{"veth", func(t *testing.T, stations [2]link.Station) (l [2]link.Link) {
		c := newCabled(t, 1500)
		for i := range l {
			c.up(i, nil)
		}
		for i := range l {
			l[i] = c.opened(i, stations[i])
		}
		return l
	}}.on(stationsOf(0, false)).make(t, AdapterConfig{})
	agreeOn(t, a, b)
}

// TestLLDP_Refused: a port of sockets has no LLDP, and says why; to switch it off there is nothing to do.
func TestLLDP_Refused(t *testing.T) {
	h := newHost(t, Config{})
	i := h.add(t, AdapterConfig{Addr: loopback.Addr()})
	err := h.SetLLDP(i, speaks(true, nil))
	wantCode(t, err, command.Unsupported)
	if err := h.SetLLDP(i, dcb.Config{}); err != nil || h.Overview().Adapters[i].LLDP != nil {
		t.Errorf("%v", err)
	}
}
