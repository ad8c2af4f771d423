package device

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// kindOf says what a captured frame is, and in which direction it goes.
func kindOf(p *capture.Packet) string {
	way := "in"
	if p.Outbound {
		way = "out"
	}
	switch b := p.Data; binary.BigEndian.Uint16(b[12:]) {
	case 0x0806:
		return fmt.Sprintf("%s ARP %d", way, b[21])
	case 0x88cc:
		return way + " LLDP"
	case 0x8808:
		return way + " pause"
	case 0x0800:
		switch b[23] {
		case 2:
			return way + " IGMP"
		case 17:
			return way + " UDP"
		}
	case 0x86dd:
		const icmp, hopByHop = 58, 0
		kind, at := b[20], 54
		if kind == hopByHop {
			kind, at = b[54], 62
		}
		switch {
		case kind == 17:
			return way + " UDP"
		case kind == icmp:
			return fmt.Sprintf("%s ICMPv6 %d", way, b[at])
		}
	}
	return way + " other"
}

// seen returns the kinds of frames that a tap has got.
func seen(tap *capture.Tap) (list []string) {
	var p capture.Packet
	for tap.Next(&p) {
		list = append(list, kindOf(&p))
	}
	return list
}

// TestCaptureOfOwnFrames: a capture shows what the link asks and answers itself, in both directions and in order: the question for
// a neighbour, its answer, and only then the packet that has waited for it; and at the other end the question before its answer.
// Reports of groups, LLDP and pauses are there, too.
func TestCaptureOfOwnFrames(t *testing.T) {
	one, _, third := threeEnds(t)
	var taps [2]*capture.Tap
	for i, p := range []*program{one, third} {
		tap, err := capture.NewTap(0, 1<<20)
		one.check(err)
		taps[i] = tap
		p.check(p.host.StartCapture(p.adapter, tap))
	}
	exchange(t, connect(third.qp(command.CreateQP{}, third.cq(64)), one.qp(command.CreateQP{}, one.cq(64))), 100)
	for i, want := range [][]string{{"in ARP 1", "out ARP 2", "in UDP"}, {"out ARP 1", "in ARP", "out UDP"}} {
		var got []string
		await.Eventually(t, fmt.Sprint("a capture at end ", i), func() bool {
			got = append(got, seen(taps[i])...)
			return slices.Contains(got, want[2]) && slices.Contains(got, "out UDP")
		})
		first := func(kind string, from int) int {
			return from + slices.IndexFunc(got[from:], func(k string) bool { return strings.HasPrefix(k, kind) })
		}
		// A question of the other end tells its address as well as an answer.
		ask := first(want[0], 0)
		answer := first(want[1], ask+1)
		if packet := first(want[2], 0); !(ask < answer && answer < packet) {
			t.Errorf("end %d sees %v, want %v in this order", i, got, want)
		}
	}
	ud := one.qp(command.CreateQP{Type: command.UD}, one.cq(16))
	one.check(one.c.AttachMulticast(bg, ud.q.Handle, command.AddrFrom(netip.MustParseAddr("239.77.3.4"))))
	waits(t, taps[0], "out IGMP")
	for _, p := range []*program{one, third} {
		p.check(p.host.SetLLDP(p.adapter, speaks(false, nil)))
		p.check(p.host.SetFlowControl(p.adapter, FlowControl{Obeys: pause.Only(8)}))
	}
	waits(t, taps[0], "out LLDP", "in LLDP")
	stop := third.rawEnd()
	copy(stop.b.b, "\x01\x80\xc2\x00\x00\x01\x02\x00\x00\x00\x09\x03\x88\x08\x01\x01\x00\x08")
	stop.postSend(1, ring.OpSend, stop.b.sge(0, 60))
	waits(t, taps[1], "out pause")
	waits(t, taps[0], "in pause")
}

// waits waits until a tap has seen frames of these kinds.
func waits(t *testing.T, tap *capture.Tap, kinds ...string) {
	t.Helper()
	var got []string
	await.Eventually(t, fmt.Sprint("a capture of ", kinds), func() bool {
		got = append(got, seen(tap)...)
		return !slices.ContainsFunc(kinds, func(k string) bool { return !slices.Contains(got, k) })
	})
}

// TestCaptureOfOwnFrames_IPv6: so are the questions and answers of neighbour discovery, in their places, and the reports of groups
// (RFC 4861, 3810).
func TestCaptureOfOwnFrames_IPv6(t *testing.T) {
	dir, err := os.MkdirTemp("", "co")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := [2]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	var taps [2]*capture.Tap
	var ends [2]*program
	for i := range ends {
		l, err := datagram.Open(datagram.Config{Local: path[i], Remote: path[1-i], MTU: 4200, Patience: await.Limit})
		if err != nil {
			t.Fatal(err)
		}
		h := newHost(t, Config{Seed: uint64(i + 1)})
		network := netip.MustParsePrefix("fd83::/64")
		ends[i] = newProgram(t, h, h.add(t, AdapterConfig{Addr: netip.MustParseAddr(fmt.Sprint("fd83::", i+1)),
			MAC: [6]byte{2, 0, 0, 0, 12, byte(i + 1)}, Link: l, Path: PathWire, Networks: []netip.Prefix{network}}))
		if taps[i], err = capture.NewTap(0, 1<<20); err == nil {
			err = h.StartCapture(ends[i].adapter, taps[i])
		}
		ends[i].check(err)
	}
	const solicitation, advertisement, report = " ICMPv6 135", " ICMPv6 136", " ICMPv6 143"
	near, far := ends[0], ends[1]
	exchange(t, connect(far.qp(command.CreateQP{}, far.cq(64)), near.qp(command.CreateQP{}, near.cq(64))), 100)
	var got []string
	await.Eventually(t, "a capture of the question, its answer and the packet", func() bool {
		got = append(got, seen(taps[1])...)
		return slices.Contains(got, "out UDP")
	})
	packet := slices.Index(got, "out UDP")
	ask, answer := slices.Index(got, "out"+solicitation), slices.Index(got, "in"+advertisement)
	if ask < 0 || answer < 0 || ask > packet || answer > packet {
		t.Errorf("captured %v, want a question and its answer before the first packet", got)
	}
	ud := near.qp(command.CreateQP{Type: command.UD}, near.cq(16))
	near.check(near.c.AttachMulticast(bg, ud.q.Handle, command.AddrFrom(netip.MustParseAddr("ff15::8:4"))))
	waits(t, taps[0], "out"+report)
	waits(t, taps[1], "in"+report)
}
