package verbs_test

import (
	"net"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// The port of an adapter at a loopback address belongs to the loopback interface, and so does the GID that is the address.
func TestInterfaces(t *testing.T) {
	all := must(net.Interfaces())(t)
	want := verbs.Interface{}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			want = verbs.Interface{Name: i.Name, Index: i.Index}
		}
	}
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		d := b.Device(t, 0)
		port, rows, err := d.Interfaces()
		ok(t, err)
		gids := must(d.GIDs())(t)
		if port != want || len(rows) != len(gids) || rows[gids[0].Index] != want {
			t.Errorf("the port is at %+v, its GIDs at %+v, want %+v", port, rows, want)
		}
	})
}
