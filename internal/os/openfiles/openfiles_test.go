package openfiles

import "testing"

// TestShares: whatever the limit, source ports take no more than a quarter, and only as long as a quarter stays free for
// what cannot be done without.
func TestShares(t *testing.T) {
	for _, limit := range []uint64{0, 3, 16, 64, 1024, Limit(), noLimit} {
		ports, kept := SourcePorts(limit), Optional(limit)
		if ports != int64(limit/4) || kept < 0 || uint64(kept)+limit/4 > limit || int64(kept) < ports {
			t.Errorf("of %d: %d for source ports, optional up to %d", limit, ports, kept)
		}
	}
	if l := Limit(); l == 0 || l > noLimit {
		t.Errorf("this process may have %d descriptors", l)
	}
}
