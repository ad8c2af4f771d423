package packet

import (
	"encoding/binary"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/wire/eth"
)

// verdict runs a program over a frame.
func verdict(t *testing.T, program int, b []byte) int32 {
	t.Helper()
	// The test of union bpf_attr: program, what it answers, length of the frame, ..., from byte 16 where it is.
	var a [80]byte
	binary.NativeEndian.PutUint32(a[0:], uint32(program))
	binary.NativeEndian.PutUint32(a[8:], uint32(len(b)))
	binary.NativeEndian.PutUint64(a[16:], uint64(uintptr(unsafe.Pointer(&b[0]))))
	if _, err := bpf(unix.BPF_PROG_TEST_RUN, a[:]); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(b)
	return int32(binary.NativeEndian.Uint32(a[4:]))
}

// gateOf loads the program of a rule, which drops.
func gateOf(t *testing.T, r Rule) (program int, state *gateState) {
	t.Helper()
	values, err := gateMap()
	if err != nil {
		t.Skipf("this system makes no maps: %v", err)
	}
	t.Cleanup(func() { unix.Close(values) })
	page, err := unix.Mmap(values, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(page) })
	program, err = loadGate(gateProgram(r, values))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(program) })
	state = (*gateState)(unsafe.Pointer(&page[0]))
	state.open = 1
	return program, state
}

// The program drops what the ring has whole, counts it, and lets everything else go on to other programs: also what is cut off,
// and all while it is shut.
func TestGateDropsWhatTheRingHas(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: loads programs")
	}
	for _, c := range filterCases() {
		if c.ifi != theInterface {
			continue // it is at the one interface alone
		}
		b, r := c.of()
		switch c.kind { // the system tells it from the address of the loopback interface
		case 0:
			copy(b, make([]byte, 6))
		case 1:
			copy(b, "\xff\xff\xff\xff\xff\xff")
		}
		program, state := gateOf(t, r)
		want, drops := int32(tcxNext), uint64(0)
		if c.ring == whole {
			want, drops = tcxDrop, 1
		}
		b = b[:min(len(b), 1024)] // the system tries it with a page at the most
		if got := verdict(t, program, b); got != want || state.dropped != drops {
			t.Errorf("%s: the program says %d and counts %d, want %d and %d", c.name, got, state.dropped, want, drops)
		}
		for n := r.headers() - eth.UDPLen; n < r.headers(); n++ { // the system runs none over less
			if got := verdict(t, program, b[:n:n]); got != tcxNext {
				t.Errorf("%s: the program says %d to its first %d bytes", c.name, got, n)
			}
		}
		if state.open = 0; verdict(t, program, b) != tcxNext {
			t.Errorf("%s: the program drops while it is shut", c.name)
		}
	}
}

// Gates are no filters of the user's, neither the Port's own nor others', and go with their Port.
func TestGatesAreNoFilters(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
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
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			t.Error(err)
			return
		}
		r := Rule{Addr: v4b, Port: 4791, Interface: lo.Attrs().Index}
		first, err := openGate(r)
		if err != nil {
			t.Logf("not run: %v", err)
			return
		}
		r.Port++
		second, err := openGate(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer second.close()
		if s.filtersIngress(r.Interface, s.ask, first.own()) || s.filtersIngress(r.Interface, s.ask, 0) {
			t.Error("gates are taken for filters")
		}
		first.close()
		first.close() // does nothing
		if isGate(first.own()) || !isGate(second.own()) {
			t.Errorf("after the end of the first: first %v, second %v", isGate(first.own()), isGate(second.own()))
		}
	})
}

// A Port without a gate is none the worse.
func TestNoGate(t *testing.T) {
	var g *gate
	g.set(true)
	if g.dropped() != 0 || g.own() != 0 {
		t.Error("something was dropped")
	}
	g.close()
}
