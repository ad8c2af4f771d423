//go:build !linux

package testbed

import (
	"net/netip"
	"testing"
)

const attaches = false

func (b *Bed) attach(t testing.TB) { t.Skip("attaching is Linux only for now") }

// Socket skips the test.
func Socket(t testing.TB, _ [2]netip.Addr) string {
	t.Skip("attaching is Linux only for now")
	return ""
}
