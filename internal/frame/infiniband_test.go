package frame

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
)

// Every LID has an address of its own, and no address of a host and no GID is taken for a LID.
func TestLIDsAreAddresses(t *testing.T) {
	seen := map[netip.Addr]ib.LID{}
	for l := range 1 << 16 {
		a := LIDAddr(ib.LID(l))
		if other, ok := seen[a]; ok {
			t.Fatalf("LIDs %d and %d are both %v", l, other, a)
		}
		seen[a] = ib.LID(l)
		if got, ok := AddrLID(a); !ok || got != ib.LID(l) || a.IsMulticast() || a.IsUnspecified() || a.Is4In6() {
			t.Fatalf("LID %d has the address %v, which gives %d, %v", l, a, got, ok)
		}
	}
	for _, s := range []string{"192.0.2.1", "::ffff:192.0.2.1", "fe80::1", "::1", "::", "ff12:401b::1", "100::1:0:0:1", "100:0:0:1::5",
		"2001:db8::1"} {
		if l, ok := AddrLID(netip.MustParseAddr(s)); ok {
			t.Errorf("%s is taken for LID %d", s, l)
		}
	}
	if _, ok := AddrLID(netip.Addr{}); ok {
		t.Error("the zero address is taken for a LID")
	}
}
