package device

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/ring"
)

// vlanOf adds a VLAN interface of a virtual function, and a program of that which is on the interface.
func vlanOf(t testing.TB, h *Host, owner uint32, id uint16, last byte) (index uint32, p *program) {
	t.Helper()
	index, err := h.AddVLAN(VLANConfig{Owner: owner, Name: "vlan" + itoa(uint32(last)), VLAN: id,
		Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 80, 0, last}), 24)})
	if err != nil {
		t.Fatal(err)
	}
	return index, newProgramWith(t, h, index, ClientConfig{Name: "tenant", PID: 1, Function: &owner})
}

// TestVLAN_OfFunction: a VLAN interface of a virtual function reaches those of others in its VLAN, with its function's MAC, beside the
// function itself; its function's programs see it, and nobody else does.
func TestVLAN_OfFunction(t *testing.T) {
	one, _, third := threeEnds(t)
	h := one.host
	owner, tenant := vf(t, h, 20, nil)
	_, other := vf(t, h, 21, nil)
	before := connect(tenant.idleQP(), third.idleQP())
	index, a := vlanOf(t, h, owner, 100, 10)
	_, far := vlan(t, third.host, 100, 11)
	_, beside := vlan(t, h, 100, 12)
	exchange(t, connect(a.idleQP(), far.idleQP()), 20000)
	exchange(t, connect(a.idleQP(), beside.idleQP()), 20000)
	exchange(t, before, 5000)
	infos, err := tenant.c.Adapters(bg)
	tenant.check(err)
	if len(infos) != 2 || infos[0].Index != 0 || infos[1].Index != index || infos[1].Addr.IP() != netip.MustParseAddr("10.80.0.10") {
		t.Errorf("the function's program sees %+v", infos)
	}
	for name, p := range map[string]*program{"the host's": one, "another function's": other} {
		_, err := p.c.AllocPD(bg, index)
		refused(t, name+" domain", err, command.NotFound)
		_, err = p.c.GIDs(bg, index)
		refused(t, name+" GIDs", err, command.NotFound)
	}
	all := h.VLANs(owner)
	if len(all) != 1 || all[0].MAC != ([6]byte{2, 0, 0, 0, 9, 20}) || !all[0].Up || len(h.VLANs(0)) != 2 || len(h.Functions(0)) != 2 {
		t.Errorf("its VLAN interfaces are %+v, of %d at the port, and %d functions", all, len(h.VLANs(0)), len(h.Functions(0)))
	}
	refused(t, "removing the function", h.RemoveFunction(owner), command.Busy)
	one.check(h.RemoveFunction(index))
	_, err = a.c.AllocPD(bg, index)
	refused(t, "a domain of an interface that is gone", err, command.NotFound)
	exchange(t, before, 5000)
	one.check(h.RemoveFunction(owner))
}

// TestVLAN_FunctionDecides: the link of a virtual function is that of its VLAN interfaces, and what it may send they may send together.
func TestVLAN_FunctionDecides(t *testing.T) {
	one, _, third := threeEnds(t)
	h := one.host
	owner, tenant := vf(t, h, 20, nil)
	index, a := vlanOf(t, h, owner, 100, 10)
	_, far := vlan(t, third.host, 100, 11)
	for _, link := range []LinkPolicy{LinkDown, LinkAuto} {
		one.check(h.SetFunction(owner, Virtual{Link: link}))
		if up := h.VLANs(owner)[0].Up; up != (link == LinkAuto) {
			t.Errorf("with its function's link %d its own is up: %v", link, up)
		}
	}
	const size, most = 1 << 20, 8e6
	pairs := [2]*connected{connect(a.idleQP(), far.idleQP()), connect(tenant.idleQP(), third.idleQP())}
	one.check(h.SetFunction(owner, Virtual{Share: port.Share{Most: most}}))
	began := h.now()
	for _, c := range pairs {
		from, to := c.a.p.buffer(size), c.b.p.buffer(size)
		wr := ring.SendWR{ID: 1, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: to.addr(0), RKey: to.mem.RKey}
		wr.SGE[0] = from.sge(0, size)
		c.a.post(wr)
	}
	for _, c := range pairs {
		wantSuccess(t, c.a.cq.next(), 1, ring.CQWrite)
	}
	if took := h.now().Sub(began).Seconds(); took < 1.5*size/most {
		t.Errorf("twice %d bytes at %.0f in a second took %.3f s", size, most, took)
	}
	one.check(h.RemoveFunction(index))
}

// TestVLAN_FunctionRefused: what cannot be a VLAN interface of a virtual function is refused.
func TestVLAN_FunctionRefused(t *testing.T) {
	one, _, _ := threeEnds(t)
	h := one.host
	owner, _ := vf(t, h, 20, nil)
	tagged, _ := vf(t, h, 21, func(f *FunctionConfig) { f.VLAN = 5 })
	index, _ := vlanOf(t, h, owner, 100, 10)
	for name, v := range map[string]struct {
		owner uint32
		id    uint16
		want  command.Code
	}{
		"a VLAN again": {owner, 100, command.Invalid}, "the function's own": {owner, 0, command.Invalid},
		"of one in a VLAN": {tagged, 7, command.Unsupported}, "of a VLAN interface": {index, 7, command.Invalid},
	} {
		_, err := h.AddVLAN(VLANConfig{Owner: v.owner, Name: "x", VLAN: v.id, Addr: netip.MustParsePrefix("10.80.0.30/24")})
		refused(t, name, err, v.want)
	}
	if n := len(h.VLANs(owner)); n != 1 {
		t.Errorf("there are %d VLAN interfaces, want 1", n)
	}
}
