// Package namespace gives tests network and mount namespaces of their own.
package namespace

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// Own moves the thread of a test to a new network namespace, whose loopback interface is up, until the
// test ends. What the test's goroutine opens is in that namespace; other goroutines are not. If the
// namespace cannot be created it skips the test.
func Own(t testing.TB) {
	t.Helper()
	systemtest.Required(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	runtime.LockOSThread()
	before, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		t.Skipf("network namespaces: %v", err)
	}
	ns, err := netns.New()
	if err != nil {
		before.Close()
		runtime.UnlockOSThread()
		if errors.Is(err, unix.EPERM) {
			t.Skip("needs the right to make network namespaces")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer before.Close()
		ns.Close()
		if err := netns.Set(before); err != nil {
			t.Error(err)
			return // the thread ends with its goroutine
		}
		runtime.UnlockOSThread()
	})
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		t.Fatal(err)
	}
}
