package device

import (
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// interfacesOf are the names of a program's interfaces by their rows. Their indices must mean something here.
func interfacesOf(t *testing.T, p *program, index map[string]int) map[uint32]string {
	t.Helper()
	here, err := os.Stat("/proc/thread-self/ns/net")
	p.check(err)
	list, err := p.c.Interfaces(bg, p.adapter)
	p.check(err)
	out := map[uint32]string{}
	for _, i := range list {
		name := string(i.Name[:])
		for n, c := range i.Name {
			if c == 0 {
				name = name[:n]
				break
			}
		}
		if i.Namespace != here.Sys().(*syscall.Stat_t).Ino || index[name] != int(i.Index) {
			t.Errorf("%s has index %d in namespace %d, want %d and this one", name, i.Index, i.Namespace, index[name])
		}
		out[i.Row] = name
	}
	return out
}

// TestInterfaces: each row of the GID table belongs to the interface that has its address now, also if that is the
// loopback interface, all of whose prefixes are its own.
func TestInterfaces(t *testing.T) {
	systemtest.Mark(t)
	l := ownNetwork(t, "10.77.0.1/24", "10.77.0.50/24")
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	index := map[string]int{"roce0": l.Attrs().Index, "lo": 1}
	p := newProgram(t, h, h.add(t, AdapterConfig{Addr: netip.MustParseAddr("10.77.0.1"), FollowInterface: true}))
	want := func(p *program, want map[uint32]string) {
		t.Helper()
		got := interfacesOf(t, p, index)
		same := len(got) == len(want)
		for row, name := range want {
			same = same && got[row] == name
		}
		if !same {
			t.Errorf("interfaces %v, want %v", got, want)
		}
	}
	want(p, map[uint32]string{command.WholePort: "roce0", 0: "roce0", 1: "roce0"})
	address(t, l, "10.77.0.50/24", false)
	want(p, map[uint32]string{command.WholePort: "roce0", 0: "roce0"}) // at once, though the row is still there
	low := newProgram(t, h, h.add(t, AdapterConfig{Addr: netip.MustParseAddr("127.9.0.2")}))
	want(low, map[uint32]string{command.WholePort: "lo", 0: "lo"})
}

// TestInterfaceOfMAC: a GID of RoCE v1, made of the MAC, belongs to the interface of the port.
func TestInterfaceOfMAC(t *testing.T) {
	list := ethernetInterfaces([]command.GID{{Index: 5, RoCE: 1, GID: [16]byte{0xfe, 0x80, 15: 1}}}, netip.MustParseAddr("127.0.0.1"))
	if len(list) != 2 || list[1].Row != 5 || list[1].Index != list[0].Index {
		t.Errorf("interfaces %+v, want that of the port for row 5 too", list)
	}
}

// TestInterfaceOfFabric: an InfiniBand port has its IPoIB interface, and its GIDs have none.
func TestInterfaceOfFabric(t *testing.T) {
	f := newIBFabric(t, 1, subnet.Config{})
	h := newHost(t, Config{Seed: 1})
	i := f.add(h, 0, AdapterConfig{})
	p := newProgram(t, h, i)
	for _, there := range []bool{false, true, false} {
		p.check(h.SetInterface(i, func() (x command.Interface, ok bool) {
			x.Index = 7
			copy(x.Name[:], "ib0")
			return x, there
		}))
		list, err := p.c.Interfaces(bg, i)
		p.check(err)
		if !there && len(list) > 0 || there && (len(list) != 1 || list[0].Row != command.WholePort || list[0].Index != 7) {
			t.Errorf("interfaces %+v of a port whose IPoIB interface is there: %v", list, there)
		}
	}
	if err := h.SetInterface(99, nil); err == nil {
		t.Error("an adapter that there is not gets an interface")
	}
}

// TestLinkAddresses: an InfiniBand port tells those of its IPoIB interfaces, whichever there are; an Ethernet port has none.
func TestLinkAddresses(t *testing.T) {
	f := newIBFabric(t, 1, subnet.Config{})
	h := newHost(t, Config{Seed: 1})
	i := f.add(h, 0, AdapterConfig{})
	p := newProgram(t, h, i)
	for _, want := range [][]command.LinkAddress{nil, {{Index: 7, Hardware: 32}}, {{Index: 7}, {Index: 9}}, nil} {
		p.check(h.SetLinkAddresses(i, func() []command.LinkAddress { return want }))
		got, err := p.c.LinkAddresses(bg, i)
		p.check(err)
		if !slices.Equal(got, want) {
			t.Errorf("link addresses %+v, want %+v", got, want)
		}
	}
	e := h.add(t, AdapterConfig{Addr: loopback.Addr()})
	if err := h.SetLinkAddresses(e, nil); err == nil {
		t.Error("an Ethernet port is given link-layer addresses of IPoIB")
	}
	if got, err := newProgram(t, h, e).c.LinkAddresses(bg, e); err != nil || len(got) > 0 {
		t.Errorf("link addresses %+v, %v of an Ethernet port", got, err)
	}
}
