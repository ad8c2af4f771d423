package namespace

import (
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Within the test there is a namespace with a loopback interface that is up, and nothing else; behind it the one before.
func TestOwn(t *testing.T) {
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
			t.Errorf("interfaces %v, %v", links, err)
		}
	})
	after, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if inside == here || after.UniqueId() != here {
		t.Errorf("inside %s, before %s, after %s", inside, here, after.UniqueId())
	}
}
