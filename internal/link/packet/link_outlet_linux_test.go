package packet_test

import (
	"encoding/binary"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/linktest"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// theClass is the class of the packets to UDP port 4791.
var theClass = netlink.MakeHandle(1, 3)

// classify gives an interface of this namespace a root qdisc with a class for what is UDP to port 4791. Everything else
// leaves without one.
func classify(name string, v6 bool) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	root := netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	if err := netlink.QdiscAdd(netlink.NewHtb(root)); err != nil {
		return err
	}
	class := netlink.NewHtbClass(netlink.ClassAttrs{LinkIndex: root.LinkIndex, Parent: root.Handle, Handle: theClass},
		netlink.HtbClassAttrs{Rate: 10e9})
	if err := netlink.ClassAdd(class); err != nil {
		return err
	}
	ip, port := uint16(unix.ETH_P_IP), int32(20)
	if v6 {
		ip, port = unix.ETH_P_IPV6, 40
	}
	return netlink.FilterAdd(&netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: root.LinkIndex, Parent: root.Handle, Priority: 1, Protocol: ip},
		ClassId:     theClass,
		Sel: &netlink.TcU32Sel{Flags: netlink.TC_U32_TERMINAL, Nkeys: 1,
			Keys: []netlink.TcU32Key{{Mask: 0xffff, Val: 4791, Off: port}}},
	})
}

// classified returns how many packets left through the class.
func classified(name string) (uint32, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return 0, err
	}
	classes, err := netlink.ClassList(l, netlink.MakeHandle(1, 0))
	if err != nil {
		return 0, err
	}
	for _, c := range classes {
		if a := c.Attrs(); a.Handle == theClass && a.Statistics != nil && a.Statistics.Basic != nil {
			return a.Statistics.Basic.Packets, nil
		}
	}
	return 0, unix.ENODATA
}

// TestFramesAreClassified: tc sees a frame as the IP packet it is. Its filters of the protocols ip and ipv6, which may be
// added at any time, put frames into the same class as what the socket sends.
func TestFramesAreClassified(t *testing.T) {
	systemtest.Mark(t)
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "v4", true: "v6"}[v6], func(t *testing.T) {
			n := linktest.NewNamespaces(t, 9000)
			l := pairOf(n, v6)
			if s := l[0].Status().Frames; s != usesFrames {
				t.Skip(s)
			}
			made := make(chan error, 1)
			n.In(0, func() error { made <- classify("a", v6); return nil })
			if err := <-made; err != nil {
				t.Skipf("this kernel has no htb or no u32: %v", err)
			}
			n.In(0, func() error { linktest.Tend(l[0]); return nil }) // where the link may see what tc has
			const short, long = 100, 5
			r := routeTo(t, l[0], l[1])
			before := l[0].Stats().SentFrames
			for i := range uint32(short + long) {
				length := 8
				if i >= short {
					length = 1024
				}
				linktest.SendAll(t, l[0], linktest.Numbered(r, l[0].Capabilities(), i, length))
				linktest.ReceiveN(t, l[1], 1)
			}
			if got := l[0].Stats().SentFrames - before; got < short/2 {
				t.Errorf("%d frames were sent of %d short packets", got, short)
			}
			n.In(0, func() error {
				got, err := classified("a")
				if err == nil && got != short+long {
					t.Errorf("%d of %d packets are in their class", got, short+long)
				}
				return err
			})
		})
	}
}

// networkOrder returns a protocol as packet sockets want it.
func networkOrder(protocol uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, protocol))
}

// TestListenersSeeFramesAsIP: whoever listens to packets without their Ethernet headers (tcpdump -i any) gets from the
// system, beside what is sent, that it is IP.
func TestListenersSeeFramesAsIP(t *testing.T) {
	systemtest.Mark(t)
	for v6, want := range map[bool]uint16{false: unix.ETH_P_IP, true: unix.ETH_P_IPV6} {
		n := linktest.NewNamespaces(t, 9000)
		l := pairOf(n, v6)
		if s := l[0].Status().Frames; s != usesFrames {
			t.Skip(s)
		}
		var tap int
		n.In(0, func() (err error) {
			tap, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(networkOrder(unix.ETH_P_ALL)))
			return err
		})
		defer unix.Close(tap)
		n.In(0, func() error { linktest.Tend(l[0]); return nil })
		const many = 20
		r := routeTo(t, l[0], l[1])
		before := l[0].Stats().SentFrames
		for i := range uint32(many) {
			linktest.SendAll(t, l[0], linktest.Numbered(r, l[0].Capabilities(), i, 8))
			linktest.ReceiveN(t, l[1], 1)
		}
		if got := l[0].Stats().SentFrames - before; got < many/2 {
			t.Errorf("%d frames were sent of %d short packets", got, many)
		}
		got := 0
		for b := make([]byte, 2048); ; {
			_, from, err := unix.Recvfrom(tap, b, 0)
			if err != nil {
				break
			}
			a, ok := from.(*unix.SockaddrLinklayer)
			if ok && a.Pkttype == unix.PACKET_OUTGOING && a.Protocol == networkOrder(want) {
				got++
			}
		}
		if got < many { // neighbour discovery is IPv6 as well
			t.Errorf("IPv6 %v: %d of %d packets were shown as IP", v6, got, many)
		}
	}
}
