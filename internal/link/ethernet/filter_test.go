package ethernet

import (
	"testing"

	"golang.org/x/net/bpf"

	"github.com/softvpi/softvpi/wire/eth"
)

// TestFilter: frames to the MACs, to groups and to everybody are accepted whole, and no others, with as many MACs as a link has
// stations.
func TestFilter(t *testing.T) {
	var macs []eth.MAC
	for i := range 256 {
		macs = append(macs, eth.MAC{2, byte(i), 0, 0, 0, byte(i)})
	}
	for _, n := range []int{0, 1, 2, 256} {
		vm, err := bpf.NewVM(filter(macs[:n]))
		if err != nil {
			t.Fatal(err)
		}
		accepts := func(to eth.MAC) bool {
			h := eth.Ethernet{Dst: to, Type: eth.TypeIPv4}
			got, err := vm.Run(append(h.Append(nil), make([]byte, 100)...))
			if err != nil {
				t.Fatal(err)
			}
			return got >= 114
		}
		for i, m := range macs {
			if accepts(m) != (i < n) {
				t.Errorf("with %d MACs, number %d: %v", n, i, accepts(m))
			}
		}
		for _, m := range []eth.MAC{{2, 1, 0, 0, 0, 0}, {4, 0, 0, 0, 0, 0}} { // the beginning of one and the end of another
			if accepts(m) {
				t.Errorf("%v is accepted", m)
			}
		}
		for _, m := range []eth.MAC{eth.Broadcast, {1, 0, 0x5e}, {0x33, 0x33}} {
			if !accepts(m) {
				t.Errorf("%v is not accepted", m)
			}
		}
	}
}
