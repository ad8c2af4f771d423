package namespace

import (
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// Own puts the test into a namespace with nothing but a loopback interface, which is up. After the test its thread is
// in the previous namespace.
func TestOwn(t *testing.T) {
	systemtest.Mark(t)
	before, err := netns.Get()
	if err != nil {
		t.Skip(err)
	}
	defer before.Close()
	here := before.UniqueId()
	inside := ""
	t.Run("inside", func(t *testing.T) {
		Own(t)
		ns, err := netns.Get()
		if err != nil {
			t.Fatal(err)
		}
		defer ns.Close()
		inside = ns.UniqueId()
		links, err := netlink.LinkList()
		if err != nil || len(links) != 1 || links[0].Attrs().RawFlags&1 == 0 {
			t.Errorf("interfaces %v, %v; want the loopback interface alone, and up", links, err)
		}
	})
	after, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if inside == here || after.UniqueId() != here {
		t.Errorf("namespace inside the test %s, before %s, after %s; want another inside, and the same before and after", inside, here,
			after.UniqueId())
	}
}
