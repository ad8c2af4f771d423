package gid

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/link"
)

// TestGIDTable: the GID table has a row for each address. Rows keep their index, and rows of removed addresses stay
// empty until new ones take them.
func TestGIDTable(t *testing.T) {
	a, b, d := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.7")
	var g Table
	mac := [6]byte{0x02, 1, 2, 3, 4, 5}
	if !g.Set(encap.RoCEv2, mac, 0, []netip.Addr{a, b}) || g.Set(encap.RoCEv2, mac, 0, []netip.Addr{a, b}) {
		t.Error("a change was not reported exactly once")
	}
	rows := g.List()
	if len(rows) != 2 || rows[0].GID != a.As16() || rows[1].GID != b.As16() || rows[0].RoCE != uint32(encap.RoCEv2) {
		t.Errorf("rows %+v, want the IPv4-mapped and the IPv6 address", rows)
	}
	g.Set(encap.RoCEv2, mac, 0, []netip.Addr{b})
	if _, err := g.Row(0); err == nil {
		t.Error("the row of an address that is gone is still there")
	}
	g.Set(encap.RoCEv2, mac, 0, []netip.Addr{b, d})
	if got, err := g.Row(0); err != nil || got != d {
		t.Errorf("row 0 is %v (%v), want %v", got, err, d)
	}
	if got, _ := g.Row(1); got != b {
		t.Errorf("row 1 moved to %v", got)
	}
	g.Set(encap.RoCEv1, mac, 0, []netip.Addr{a})
	if want := netip.MustParseAddr("fe80::1:2ff:fe03:405"); g.List()[0].GID != want.As16() {
		t.Errorf("RoCE v1 GID %v, want %v", g.List()[0].GID, want)
	}
	g.Set(encap.RoCEv1, mac, 0x123, []netip.Addr{a})
	if want := netip.MustParseAddr("fe80::1:201:2303:405"); g.List()[0].GID != want.As16() {
		t.Errorf("RoCE v1 GID in a VLAN %v, want %v", g.List()[0].GID, want)
	}
}

// TestGIDTableIsFull: addresses beyond the size of the table are counted; a change of their number is a change of the
// table.
func TestGIDTableIsFull(t *testing.T) {
	var addrs []netip.Addr
	for a := netip.MustParseAddr("192.0.2.1"); len(addrs) < Most+2; a = a.Next() {
		addrs = append(addrs, a)
	}
	var g Table
	for _, c := range []struct {
		addrs        []netip.Addr
		changed      bool
		rows, unused int
	}{
		{addrs[:Most], true, Most, 0}, {addrs, true, Most, 2}, {addrs, false, Most, 2}, {addrs[1:], true, Most, 1}, {addrs[:1], true, 1, 0},
	} {
		changed := g.Set(encap.RoCEv2, [6]byte{2}, 0, c.addrs)
		if changed != c.changed || len(g.List()) != c.rows || g.Unused() != c.unused {
			t.Errorf("%d addresses: changed %v, %d rows, %d unused; want %+v", len(c.addrs), changed, len(g.List()), g.Unused(), c)
		}
	}
}

// TestPort: the rows of an InfiniBand port are those of its GUIDInfo, with empty ones in their places.
func TestPort(t *testing.T) {
	var g Table
	p := &link.Port{Prefix: LinkLocal, GUIDs: []uint64{5, 0, 7}}
	if !g.SetPort(p) || g.SetPort(p) {
		t.Error("a change was not reported exactly once")
	}
	rows := g.List()
	if len(rows) != 2 || rows[1].Index != 2 || rows[1].RoCE != uint32(encap.InfiniBand) ||
		netip.AddrFrom16(rows[1].GID) != netip.MustParseAddr("fe80::7") {
		t.Errorf("rows %+v, want two, the second with index 2", rows)
	}
	if at := g.Index(netip.MustParseAddr("fe80::7")); at != 2 || !g.Has(Of(LinkLocal, 5)) || g.Has(Of(LinkLocal, 6)) {
		t.Errorf("fe80::7 is in row %d", at)
	}
	if a, ok := g.First(false); !ok || a != Of(LinkLocal, 5) {
		t.Errorf("the first is %v", a)
	}
	if a, ok := g.First(true); ok {
		t.Errorf("%v is of IPv4", a)
	}
	p.GUIDs = make([]uint64, Most+3)
	if !g.SetPort(p) || g.Unused() != 3 {
		t.Errorf("%d found no room", g.Unused())
	}
}
