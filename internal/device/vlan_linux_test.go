package device

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

// vlan adds a VLAN interface at adapter 0 of a host, and a program that is on it.
func vlan(t testing.TB, h *Host, id uint16, last byte) (index uint32, p *program) {
	t.Helper()
	index, err := h.AddVLAN(VLANConfig{Name: "vlan" + itoa(uint32(last)), VLAN: id,
		Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 80, 0, last}), 24)})
	if err != nil {
		t.Fatal(err)
	}
	return index, newProgram(t, h, index)
}

// TestVLAN: VLAN interfaces reach those of other machines in their VLAN, with the MACs of their adapters; the adapters themselves go on
// beside them, and those who come and go disturb nobody.
func TestVLAN(t *testing.T) {
	one, two, third := threeEnds(t)
	before, inside := connect(one.idleQP(), third.idleQP()), connect(one.idleQP(), two.idleQP())
	_, a := vlan(t, one.host, 100, 10)
	_, b := vlan(t, third.host, 100, 11)
	kept := connect(a.idleQP(), b.idleQP())
	exchange(t, kept, 20000)
	for i := range 3 {
		index, c := vlan(t, one.host, 200, 12)
		far, d := vlan(t, third.host, 200, 13)
		exchange(t, connect(c.idleQP(), d.idleQP()), 20000)
		one.check(one.host.RemoveFunction(index))
		one.check(third.host.RemoveFunction(far))
		if infos, err := one.c.Adapters(bg); err != nil || len(infos) != 3 {
			t.Errorf("round %d: a program sees %d adapters (%v), want two and a VLAN interface", i, len(infos), err)
		}
		_, err := one.c.AllocPD(bg, index)
		refused(t, "a domain of an interface that is gone", err, command.NotFound)
		for _, x := range []*connected{before, inside, kept} {
			exchange(t, x, 5000)
		}
	}
	all := one.host.VLANs(0)
	if len(all) != 1 || len(one.host.Functions(0)) != 0 {
		t.Fatalf("there are %d VLAN interfaces, and %d virtual functions", len(all), len(one.host.Functions(0)))
	}
	s, w := all[0], all[0].Frames.Wire
	if w.SentBytes < 20000 || w.ReceivedBytes < 20000 || !s.Up || s.MAC != ([6]byte{2, 0, 0, 0, 9, 1}) || s.VLAN != 100 {
		t.Errorf("the VLAN interface is %+v", s)
	}
}

// TestVLAN_Apart: ends in different VLANs do not reach each other, also at one port; a virtual function's program does not
// see VLAN interfaces.
func TestVLAN_Apart(t *testing.T) {
	one, _, third := threeEnds(t)
	_, a := vlan(t, one.host, 100, 10)
	_, c := vlan(t, one.host, 200, 11)
	_, far := vlan(t, third.host, 200, 12)
	_, tenant := vf(t, one.host, 20, nil)
	x := &connected{a: a.idleQP(), b: c.idleQP()}
	x.a.toReceive(x.b)
	x.b.toReceive(x.a)
	x.a.toSend()
	x.b.toSend()
	one.host.lock()
	for _, q := range []*pair{x.a, x.b} {
		if one.host.peerOf(q.p.c.qps.Get(q.q.Handle)) != nil {
			t.Error("queue pairs in different VLANs are peers")
		}
	}
	one.host.unlock()
	exchange(t, connect(c.idleQP(), far.idleQP()), 5000)
	if infos, err := tenant.c.Adapters(bg); err != nil || len(infos) != 1 {
		t.Errorf("the program of a virtual function sees %d adapters (%v), want its own", len(infos), err)
	}
	id, err := tenant.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	tenant.check(err)
	_, err = tenant.c.CMBind(bg, id, command.Endpoint{Addr: command.AddrFrom(netip.MustParseAddr("10.80.0.10"))})
	refused(t, "binding to a VLAN interface", err, command.AddrNotAvailable)
}

// TestVLAN_Refused: what cannot be is refused, and leaves nothing behind.
func TestVLAN_Refused(t *testing.T) {
	one, _, _ := threeEnds(t)
	h := one.host
	_, _ = vlan(t, h, 100, 10)
	good := VLANConfig{Name: "x", VLAN: 7, Addr: netip.MustParsePrefix("10.80.0.30/24")}
	for _, x := range []struct {
		name   string
		change func(*VLANConfig)
		want   command.Code
	}{
		{"no adapter", func(v *VLANConfig) { v.Owner = 77 }, command.NotFound},
		{"a VLAN again", func(v *VLANConfig) { v.VLAN = 100 }, command.Invalid},
		{"the adapter's own VLAN", func(v *VLANConfig) { v.VLAN = 0 }, command.Invalid},
		{"no VLAN", func(v *VLANConfig) { v.VLAN = 4095 }, command.Invalid},
		{"another's name", func(v *VLANConfig) { v.Name = "vlan10" }, command.InUse},
		{"another's address", func(v *VLANConfig) { v.Addr = netip.MustParsePrefix("10.80.0.10/24") }, command.InUse},
	} {
		v := good
		x.change(&v)
		_, err := h.AddVLAN(v)
		refused(t, x.name, err, x.want)
	}
	if n := len(h.VLANs(0)); n != 1 {
		t.Errorf("there are %d VLAN interfaces, want 1", n)
	}
	p, _ := overUDP(true)(t, AdapterConfig{})
	if _, err := p.host.AddVLAN(good); !errors.Is(err, &command.Error{Code: command.Unsupported}) {
		t.Errorf("on UDP sockets: %v", err)
	}
}
