package driver

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// inNetwork runs fn in a network namespace of its own that commands of ip(8) set up.
func inNetwork(t *testing.T, commands string, fn func()) {
	t.Helper()
	systemtest.Required(t)
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	done := make(chan struct{})
	var failed error
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its namespace with it
		if failed = unix.Unshare(unix.CLONE_NEWNET); failed != nil {
			return
		}
		ip := exec.Command("ip", "-batch", "-")
		ip.Stdin = strings.NewReader(commands)
		if out, err := ip.CombinedOutput(); err != nil {
			failed = fmt.Errorf("ip: %w: %s", err, out)
			return
		}
		fn()
	}()
	<-done
	if failed != nil {
		t.Skip("no network of its own here: ", failed)
	}
}

// TestPortOfAnInterface: a port whose link carries smaller frames than *JumboPacket asks for, or that has more
// addresses than RoCE allows, reports this and runs with what there is (WinOF-2 1.21, 5.5).
func TestPortOfAnInterface(t *testing.T) {
	systemtest.Mark(t)
	var b strings.Builder
	b.WriteString("link add vpi0 type veth peer name vpi1\nlink set vpi0 up\nlink set vpi1 up\n")
	for i := range 130 {
		fmt.Fprintf(&b, "addr add 10.77.0.%d/16 dev vpi0\n", i+1)
	}
	cfg := quiet(t)
	cfg.Adapters = cfg.Adapters[:1]
	cfg.Adapters[0].Address, cfg.Adapters[0].FollowInterface = netip.MustParseAddr("10.77.0.1"), true
	cfg.UpdateGIDTimerFrequency = new(uint32) // never, because that would look in the namespace of another thread
	inNetwork(t, b.String(), func() {
		d, err := Start(t.Context(), cfg, Options{Version: "test"})
		if err != nil {
			t.Error(err)
			return
		}
		wantEvent(t, d, "TooManyAddresses", "left", "128")
		large := "9014"
		if _, err := d.Set("left", "*JumboPacket", &large); err != nil {
			t.Error(err)
		}
		if err := d.RestartAdapter("left"); err != nil {
			t.Error(err)
		}
		wantEvent(t, d, "JumboPacketReduced", "left", "packets of 9014 bytes", "supports 1514; 1514 are used")
		if s := d.Status().Adapters[0]; s.LinkMTU != 1500 || !s.Up || len(s.GIDs) != 128 {
			t.Errorf("link MTU %d, up %v, %d GIDs; want 1500, up, 128", s.LinkMTU, s.Up, len(s.GIDs))
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}
