package device

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/wire/ib"
)

// ibVF adds a virtual function at the InfiniBand port of adapter 0 of a host, waits until it has its alias GUID, and adds a program that
// has it.
func ibVF(f *ibFabric, h *Host, last byte, change func(*FunctionConfig)) (index uint32, p *program) {
	f.t.Helper()
	c := FunctionConfig{Name: "vf" + itoa(uint32(last)), GUID: 0x0200_0000_0000_0000 | uint64(last),
		Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 79, 0, last}), 24)}
	c.Aliases = AliasGUIDs{List: [2]uint64{c.GUID}, Used: 1}
	if change != nil {
		change(&c)
	}
	index, err := h.AddFunction(c)
	if err != nil {
		f.t.Fatal(err)
	}
	f.until(h, func() bool { return h.adapters[index].up() })
	f.registered(h, index)
	return index, newProgramWith(f.t, h, 0, ClientConfig{Name: c.Name, PID: 1, Function: &index})
}

// ibTenants is a fabric of two hosts, a physical function with two virtual ones at the first, and somebody at the second.
func ibTenants(t *testing.T, cfg subnet.Config) (f *ibFabric, one, third, a, b *program) {
	t.Helper()
	f = newIBFabric(t, 2, cfg)
	h, g := newHost(t, Config{Seed: 1}), newHost(t, Config{Seed: 2})
	i := f.add(h, 0, AdapterConfig{Addr: netip.MustParseAddr("10.79.0.1")})
	j := f.add(g, 1, AdapterConfig{Addr: netip.MustParseAddr("10.79.0.3")})
	one, third = newProgram(t, h, i), newProgram(t, g, j)
	_, a = ibVF(f, h, 10, nil)
	_, b = ibVF(f, h, 11, nil)
	return f, one, third, a, b
}

// TestVirtualIB: virtual functions of an InfiniBand port have the port's LID and alias GIDs of their own, and reach each other, their
// physical function and the outside, on whatever path.
func TestVirtualIB(t *testing.T) {
	_, one, third, a, b := ibTenants(t, subnet.Config{})
	h := one.host
	for _, p := range []PathPolicy{PathAuto, PathWire} {
		for i := range h.Snapshot().Adapters {
			_ = h.SetPath(uint32(i), p)
		}
		for i := uint32(1); i < 3; i++ {
			one.check(h.SetPath(i, p))
		}
		for _, x := range [][2]*program{{a, b}, {b, a}, {a, one}, {one, b}, {a, third}, {third, b}} {
			exchange(t, connect(x[0].idleQP(), x[1].idleQP()), 20000)
		}
	}
	port, err := one.c.Port(bg, 0)
	one.check(err)
	for n, p := range []*program{a, b} {
		gids, err := p.c.GIDs(bg, 0)
		p.check(err)
		own, err := p.c.Port(bg, 0)
		p.check(err)
		want := gid.Of(gid.LinkLocal, 0x0200_0000_0000_000a+uint64(n))
		if len(gids) != 1 || gids[0].Index != 0 || netip.AddrFrom16(gids[0].GID) != want || own.LID != port.LID || own.LID == 0 {
			t.Errorf("virtual function %d has %+v at LID %d, want %v at %d", n, gids, own.LID, want, port.LID)
		}
		s := status(t, h, "vf1"+itoa(uint32(n)))
		if s.Fabric == nil || s.Fabric.Why != nil ||
			s.Frames.Wire.SentBytes < 20000 || s.Frames.Wire.ReceivedBytes < 20000 || !s.Up || s.Number != n {
			t.Errorf("its status is %+v, %+v", s.Fabric, s.Frames)
		}
	}
	gids, err := one.c.GIDs(bg, 0)
	one.check(err)
	if len(gids) != 1 {
		t.Errorf("the physical function has the GIDs %v", gids)
	}
}

// TestVirtualIB_Partitions: a virtual function has of the port's partitions what it was given, at its own indices; functions in
// different ones do not reach each other, and none uses another's.
func TestVirtualIB_Partitions(t *testing.T) {
	t.Parallel()
	parts, err := partition.Parse("Default=0x7fff: ALL=full;\nred=0x1: ALL=full;\nblue=0x2: ALL=full;\n")
	if err != nil {
		t.Fatal(err)
	}
	f := newIBFabric(t, 2, subnet.Config{Partitions: parts})
	h := newHost(t, Config{Seed: 1})
	i := f.add(h, 0, AdapterConfig{Addr: netip.MustParseAddr("10.79.0.1"), MaxCMRetries: 1})
	f.until(h, func() bool { return slices.Contains(h.adapters[i].ib.Keys(), 0x8002) })
	one := newProgram(t, h, i)
	in := func(keys ...ib.PKey) func(*FunctionConfig) {
		return func(c *FunctionConfig) { c.Virtual.PKeys.Used = copy(c.Virtual.PKeys.Keys[:], keys) }
	}
	index, red := ibVF(f, h, 10, in(0x8001))
	_, red2 := ibVF(f, h, 11, in(0x8009, 0x8001))
	_, blue := ibVF(f, h, 12, in(0x8002))
	for p, want := range map[*program][]uint16{red: {0x8001}, red2: {0, 0x8001}, blue: {0x8002}} {
		i, err := p.c.Port(bg, 0)
		p.check(err)
		if got := i.PKeys[:i.PKeyCount]; len(got) != len(want) || got[0] != want[0] || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("the table is %#x, want %#x", got, want)
		}
	}
	exchange(t, connect(red.idleQP(), one.idleQP()), 20000)
	id, err := red.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	red.check(err)
	red.dial(command.CMConnect{ID: id, QP: red.idleQP().q.Handle, Remote: command.Endpoint{Addr: command.AddrFrom(blue.addr), Port: 9}})
	red.event(command.EventUnreachable)
	red.check(h.SetFunction(index, Virtual{PKeys: Partitions{Keys: [MostPartitions]ib.PKey{0x8002}, Used: 1}}))
	red.event(command.EventPKeyChange)
	exchange(t, connect(red.idleQP(), blue.idleQP()), 20000)
}

// ofLIDs makes a virtual function have a LID of its own.
func ofLIDs(c *FunctionConfig) { c.ByLID = true }

// TestVirtualIB_LIDs: with a subnet manager that enables virtualization virtual functions have LIDs of their own, and reach each other,
// their physical function and the outside by them, on whatever path.
func TestVirtualIB_LIDs(t *testing.T) {
	f := newIBFabric(t, 2, subnet.Config{Virtual: subnet.VirtualEnable})
	h, g := newHost(t, Config{Seed: 1}), newHost(t, Config{Seed: 2})
	i := f.add(h, 0, AdapterConfig{Addr: netip.MustParseAddr("10.79.0.1")})
	j := f.add(g, 1, AdapterConfig{Addr: netip.MustParseAddr("10.79.0.3")})
	one, third := newProgram(t, h, i), newProgram(t, g, j)
	_, a := ibVF(f, h, 10, ofLIDs)
	index, b := ibVF(f, h, 11, ofLIDs)
	_, c := ibVF(f, h, 12, nil) // by an alias, at the same port
	lids := map[uint16]string{}
	for name, p := range map[string]*program{"pf": one, "a": a, "b": b, "third": third} {
		info, err := p.c.Port(bg, 0)
		p.check(err)
		if lids[info.LID] != "" || info.LID == 0 || info.LMC != 0 {
			t.Errorf("%s has LID %d and LMC %d, as %q", name, info.LID, info.LMC, lids[info.LID])
		}
		lids[info.LID] = name
	}
	for _, p := range []PathPolicy{PathAuto, PathWire} {
		for i := range h.Snapshot().Adapters {
			_ = h.SetPath(uint32(i), p)
		}
		for _, x := range [][2]*program{{a, b}, {b, a}, {a, one}, {one, b}, {a, third}, {third, b}, {a, c}, {c, b}, {c, one}} {
			exchange(t, connect(x[0].idleQP(), x[1].idleQP()), 20000)
		}
	}
	gids, err := a.c.GIDs(bg, 0)
	a.check(err)
	if s := status(t, h, "vf10"); len(gids) != 1 || netip.AddrFrom16(gids[0].GID) != gid.Of(gid.LinkLocal, 0x0200_0000_0000_000a) ||
		s.Fabric == nil || s.Fabric.Why != nil || s.Fabric.LID == 0 || s.Fabric.Aliases[0] != 0x0200_0000_0000_000a {
		t.Errorf("it has %+v, and its status is %+v", gids, s.Fabric)
	}
	before := status(t, h, "vf11").Fabric.LID
	b.check(h.SetFunction(index, Virtual{Link: LinkDown}))
	b.event(command.EventPortDown)
	b.check(h.SetFunction(index, Virtual{}))
	b.event(command.EventPortActive)
	if now := status(t, h, "vf11").Fabric.LID; now != before {
		t.Errorf("it has LID %d after its link was down, it had %d", now, before)
	}
	exchange(t, connect(b.idleQP(), third.idleQP()), 20000)
}

// TestVirtualIB_NotVirtual: with a subnet manager that does not enable virtualization a virtual function by LID is down, and says why.
func TestVirtualIB_NotVirtual(t *testing.T) {
	f := newIBFabric(t, 2, subnet.Config{})
	h := newHost(t, Config{Seed: 1})
	f.add(h, 0, AdapterConfig{Addr: netip.MustParseAddr("10.79.0.1")})
	if _, err := h.AddFunction(FunctionConfig{Name: "vf", GUID: 7, Addr: netip.MustParsePrefix("10.79.0.9/24"), ByLID: true}); err != nil {
		t.Fatal(err)
	}
	f.until(h, func() bool { return h.adapters[0].up() && h.adapters[1].fabricStatus().Why != nil })
	if s := status(t, h, "vf"); s.Up || s.Fabric.LID != 0 {
		t.Errorf("it is up: %v, and its status is %+v", s.Up, s.Fabric)
	}
}
