package packet

import (
	"encoding/binary"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// onThread runs f in a goroutine whose thread ends with it: it may change its network namespace.
func onThread(t *testing.T, f func(t *testing.T)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f(t)
	}()
	<-done
}

func TestParseQdisc(t *testing.T) {
	b := make([]byte, tcMsgLen)
	binary.NativeEndian.PutUint32(b[4:], 7)
	binary.NativeEndian.PutUint32(b[12:], ingressParent)
	if q, ok := parseQdisc(b); !ok || q != (qdisc{7, ingressParent}) {
		t.Errorf("%+v, %v", q, ok)
	}
	if _, ok := parseQdisc(b[:tcMsgLen-1]); ok {
		t.Error("what is cut off was read")
	}
}

// Of all that tc may have only what is at the interface's own entrance counts, and where the interface cannot be asked for, it may
// have something.
func TestWhatLooksAtTheEntrance(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	outside, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(outside)
	onThread(t, func(t *testing.T) {
		ns, err := netns.New()
		if err != nil {
			t.Logf("not run: %v", err)
			return
		}
		defer ns.Close()
		s, err := openSystem()
		if err != nil {
			t.Error(err)
			return
		}
		defer s.close()
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "other"}, PeerName: "peer"}); err != nil {
			t.Logf("not run: %v", err)
			return
		}
		lo, _ := netlink.LinkByName("lo")
		other, _ := netlink.LinkByName("other")
		index := lo.Attrs().Index
		check := func(what string, want bool) {
			t.Helper()
			if got := s.filtersIngress(index, s.ask, 0); got != want {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		if s.filtersIngress(index, s.ask, 0) && tcxPrograms(index, s.ask, 0) {
			t.Log("not run: this system does not tell of programs")
			return
		}
		check("nothing there", false)
		if !s.filtersIngress(index, outside, 0) {
			t.Error("told of another namespace")
		}
		clsact := func(of netlink.Link) netlink.Qdisc {
			return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: of.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
		}
		if err := netlink.QdiscAdd(clsact(other)); err != nil {
			t.Logf("not run to the end: this system has no clsact: %v", err)
			return
		}
		check("at another interface", false)
		if err := netlink.QdiscAdd(clsact(lo)); err != nil {
			t.Error(err)
			return
		}
		check("at this one", true)
		p := &Port{cfg: Config{Interface: index}, system: s}
		s.changes(p.changed)
		if !p.late {
			t.Error("the change was not heard of")
		}
		if err := netlink.QdiscDel(clsact(lo)); err != nil {
			t.Error(err)
			return
		}
		check("gone again", false)
	})
}
