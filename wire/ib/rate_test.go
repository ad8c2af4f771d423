package ib

import "testing"

// TestRate: codes and speeds of IBA 15.2.5.16; what is no code has no speed.
func TestRate(t *testing.T) {
	for _, c := range []struct {
		code Rate
		mbps int
	}{{0, 0}, {1, 0}, {2, 2500}, {3, 10000}, {5, 5000}, {7, 40000}, {15, 25000}, {16, 100000}, {26, 2400000}, {27, 0}, {255, 0}} {
		if got := c.code.Mbps(); got != c.mbps {
			t.Errorf("code %d is %d Mb/s, want %d", c.code, got, c.mbps)
		}
	}
}
