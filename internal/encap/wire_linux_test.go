package encap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/udp"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestICRCIsRightOnTheWire: the ICRC is right on the wire too, with the identifications in the frames: those of a
// burst are the places when the kernel cuts it. A veth pair in a namespace of its own shows the frames.
func TestICRCIsRightOnTheWire(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	v4, v6 := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::2")
	tap := wire(t, []string{"192.0.2.1/24", "2001:db8::1/64"}, []netip.Addr{v4, v6})
	const staged = 20 // packets behind the others that a link may take into its own memory
	for name, cfg := range socketForms {
		for _, c := range []struct{ src, dst netip.Addr }{{netip.MustParseAddr("192.0.2.1"), v4},
			{netip.MustParseAddr("2001:db8::1"), v6}} {
			if cfg.Portable && c.dst.Is4() {
				continue // net's sockets leave the identification to the kernel, see the package's comment
			}
			cfg.Addr = c.src
			l, err := udp.Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			e := open(t, RoCEv2, l.Capabilities(), c.src)
			r := &frame.Route{Src: c.src, Dst: c.dst, SrcPort: 0xc123, TrafficClass: 0x6a}
			if err := l.Prepare(r); err != nil {
				t.Fatal(err)
			}
			out := make([]frame.Out, len(lengths)+staged)
			for i := range out {
				if i < len(lengths) {
					fill(&out[i], r, make([]byte, lengths[i]))
				} else {
					fill(&out[i], r, bytes.Repeat([]byte{byte(i)}, 1024))
					out[i].Windowed = true
				}
			}
			e.Seal(out)
			if n, err := l.Send(out); err != nil || n != len(out) {
				t.Fatalf("%s to %v: %d sent, %v", name, c.dst, n, err)
			}
			strict := open(t, RoCEv2, raw, c.dst)
			b := make([]byte, 70000)
			for i := 0; i < len(out); {
				n, err := unix.Read(tap, b)
				if err == unix.EINTR { // the runtime's own signals end a call with a time limit
					continue
				}
				if errors.Is(err, unix.EAGAIN) {
					t.Fatalf("%s to %v: %d of %d packets are on the wire", name, c.dst, i, len(out))
				}
				if err != nil {
					t.Fatal(err)
				}
				in := []frame.In{{Data: b[:n], Raw: true}}
				opened := strict.Open(in)
				if opened == 0 && strict.Counters() == (Counters{NotForUs: strict.Counters().NotForUs}) {
					continue // neighbour discovery and the like
				}
				if opened == 0 {
					t.Fatalf("%s to %v: packet %d of %d bytes on the wire, headers % x: %+v", name, c.dst, i, n, b[:min(n, 54)],
						strict.Counters())
				}
				if want := uint16(0); c.dst.Is4() {
					if l.Capabilities().SegmentIDs {
						want = out[i].Segment
					}
					if in[0].ID != want {
						t.Errorf("%s: packet %d has identification %d, want %d", name, i, in[0].ID, want)
					}
				}
				i++
			}
			if s := l.Stats(); l.Capabilities().Stager != nil && s.SentStaged != staged {
				t.Errorf("%s to %v: %d packets left without a copy, want %d", name, c.dst, s.SentStaged, staged)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// wire makes a veth pair with addrs at one end and returns a packet socket at the other, where the neighbours seem to
// be.
func wire(t *testing.T, addrs []string, neighbours []netip.Addr) (tap int) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "near", MTU: 1500}, PeerName: "far"}
	if err := netlink.LinkAdd(pair); err != nil {
		t.Skipf("no veth pair: %v", err)
	}
	near, err := netlink.LinkByName("near")
	must(err)
	far, err := netlink.LinkByName("far")
	must(err)
	must(netlink.LinkSetGSOMaxSegs(near, 1)) // so that the kernel cuts bursts before they leave
	must(netlink.LinkSetUp(near))
	must(netlink.LinkSetUp(far))
	for _, a := range addrs {
		addr, err := netlink.ParseAddr(a)
		must(err)
		addr.Flags = unix.IFA_F_NODAD
		must(netlink.AddrAdd(near, addr))
	}
	for _, n := range neighbours {
		must(netlink.NeighSet(&netlink.Neigh{LinkIndex: near.Attrs().Index, State: netlink.NUD_PERMANENT, IP: n.AsSlice(),
			HardwareAddr: far.Attrs().HardwareAddr}))
	}
	all := binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL & 0xff})
	tap, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(all))
	must(err)
	t.Cleanup(func() { _ = unix.Close(tap) })
	must(unix.SetsockoptTimeval(tap, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}))
	must(unix.Bind(tap, &unix.SockaddrLinklayer{Protocol: all, Ifindex: far.Attrs().Index}))
	return tap
}
