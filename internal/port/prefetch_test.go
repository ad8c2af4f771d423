package port

import (
	"net/netip"
	"testing"
)

// TestPrefetch_AnyState: prefetching takes a port without stations, and a wire without any.
func TestPrefetch_AnyState(t *testing.T) {
	var p Port
	var w Wire
	all := func() {
		for step := -1; step < 5; step++ {
			p.Prefetch(step, &w)
		}
	}
	all()
	s := p.Attach(nil, Station{})
	all()
	s.Plug(&w, netip.Addr{}, nil)
	all()
	p.Detach(s)
	all()
}
