package gid

import (
	"net"
	"net/netip"
	"testing"
)

// The loopback interface has its address, and every other one of its prefix; an address of nobody has no interface.
func TestHolders(t *testing.T) {
	all := Holders()
	for addr, there := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "192.0.2.199": false} {
		i, ok := all.Of(netip.MustParseAddr(addr))
		if ok != there || ok && i.Flags&net.FlagLoopback == 0 {
			t.Errorf("%s is at %+v (%v)", addr, i.Name, ok)
		}
	}
}
