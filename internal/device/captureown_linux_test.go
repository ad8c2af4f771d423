package device

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link/capture"
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
