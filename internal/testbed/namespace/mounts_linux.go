package namespace

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// Mounts runs mount and then fn on a thread with a mount namespace of its own, so that other threads do
// not see what is mounted. If that is impossible it skips the test. fn must not call t.FailNow, because it
// runs in a goroutine of its own.
func Mounts(t testing.TB, mount func() error, fn func()) {
	t.Helper()
	systemtest.Required(t)
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	done := make(chan struct{})
	var failed error
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its mounts with it
		err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "")
		}
		if err == nil {
			err = mount()
		}
		if failed = err; err == nil {
			fn()
		}
	}()
	<-done
	if failed != nil {
		t.Skip("no mounts here: ", failed)
	}
}
