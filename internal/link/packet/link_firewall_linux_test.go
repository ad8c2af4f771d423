package packet_test

import (
	"strings"
	"testing"

	"github.com/google/nftables"

	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/link/udp"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/linktest"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestFramesStayBesideIdleChains: chains that cannot affect packets to this host, such as those without rules or for
// forwarded packets, do not count as a firewall.
func TestFramesStayBesideIdleChains(t *testing.T) {
	systemtest.Mark(t)
	n := linktest.NewNamespaces(t, 1500)
	made := make(chan error, 2)
	n.In(1, func() error {
		made <- linktest.Chain("empty", nftables.ChainHookInput, false)
		made <- linktest.Chain("passing", nftables.ChainHookForward, true)
		return nil
	})
	for range 2 {
		if err := <-made; err != nil {
			t.Skipf("this kernel has no nftables: %v", err)
		}
	}
	n.In(1, func() error {
		l, err := udp.Open(udp.Config{Addr: n.V4[1], Port: 4792})
		if err != nil {
			return err
		}
		if s := l.Status().Frames; strings.Contains(s, "firewall") {
			t.Errorf("status %q with chains that do nothing, want no mention of a firewall", s)
		}
		return l.Close()
	})
}

// TestFramesYieldToAFirewall: frames would bypass a firewall, so none are used beside one unless they are forced. If
// one is set up later, the socket receives everything from then on, each packet once.
func TestFramesYieldToAFirewall(t *testing.T) {
	systemtest.Mark(t)
	n := linktest.NewNamespaces(t, 1500)
	l := pairOf(n, false)
	if s := l[1].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	made := make(chan error, 1)
	n.In(1, func() error { made <- linktest.Chain("guard", nftables.ChainHookInput, true); return nil })
	if err := <-made; err != nil {
		t.Skipf("this kernel has no nftables: %v", err)
	}
	await.Eventually(t, "no frames are used beside the firewall", func() bool {
		linktest.Tend(l[1])
		return strings.Contains(l[1].Status().Frames, "firewall")
	})
	r := routeTo(t, l[0], l[1])
	before := l[1].Stats()
	linktest.SendAll(t, l[0], linktest.Numbered(r, l[0].Capabilities(), 0, 8, 1024, 64, 64, 8))
	linktest.ReceiveN(t, l[1], 5)
	if k := linktest.ReceiveSome(t, l[1]); k != 0 || l[1].Stats().ReceivedFrames != before.ReceivedFrames {
		t.Errorf("%d packets came twice; %+v", k, l[1].Stats())
	}
	back := routeTo(t, l[1], l[0])
	linktest.SendAll(t, l[1], linktest.Numbered(back, l[1].Capabilities(), 0, 8, 1024, 8))
	linktest.ReceiveN(t, l[0], 3)
	if s := l[1].Stats(); s.SentFrames != before.SentFrames {
		t.Errorf("%d frames were sent beside the firewall", s.SentFrames-before.SentFrames)
	}
	for mode, want := range map[packet.Mode]string{packet.Auto: "no frames: the system has a firewall, which they would pass by",
		packet.On: usesFrames} {
		n.In(1, func() error {
			other, err := udp.Open(udp.Config{Addr: n.V4[1], Port: 4792, Frames: mode})
			if err != nil {
				return err
			}
			if s := other.Status().Frames; s != want {
				t.Errorf("%v beside a firewall: %q, want %q", mode, s, want)
			}
			return other.Close()
		})
	}
}
