package udp

import (
	"strings"
	"testing"

	"github.com/google/nftables"

	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// nftChain makes an nftables table of family inet in this network namespace, with a chain at a hook and, if rule is
// set, a rule in it that matches everything and does nothing.
func nftChain(name string, hook *nftables.ChainHook, rule bool) error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	chain := conn.AddChain(&nftables.Chain{Name: "c", Table: conn.AddTable(&nftables.Table{Name: name, Family: nftables.TableFamilyINet}),
		Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: nftables.ChainPriorityFilter})
	if rule {
		conn.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain})
	}
	return conn.Flush()
}

// TestFramesStayBesideIdleChains: chains that cannot affect packets to this host, such as those without rules or for
// forwarded packets, do not count as a firewall.
func TestFramesStayBesideIdleChains(t *testing.T) {
	systemtest.Mark(t)
	n := newNamespaces(t, 1500)
	made := make(chan error, 2)
	n.in(1, func() error {
		made <- nftChain("empty", nftables.ChainHookInput, false)
		made <- nftChain("passing", nftables.ChainHookForward, true)
		return nil
	})
	for range 2 {
		if err := <-made; err != nil {
			t.Skipf("this kernel has no nftables: %v", err)
		}
	}
	n.in(1, func() error {
		l, err := Open(Config{Addr: n.v4[1], Port: 4792})
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
	n := newNamespaces(t, 1500)
	l := n.pairOf([2]Config{}, false)
	if s := l[1].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	made := make(chan error, 1)
	n.in(1, func() error { made <- nftChain("guard", nftables.ChainHookInput, true); return nil })
	if err := <-made; err != nil {
		t.Skipf("this kernel has no nftables: %v", err)
	}
	await.Eventually(t, "no frames are used beside the firewall", func() bool {
		tend(l[1])
		return strings.Contains(l[1].Status().Frames, "firewall")
	})
	r := routeTo(t, l[0], l[1])
	before := l[1].Stats()
	sendAll(t, l[0], numbered(r, l[0].Capabilities(), 0, 8, 1024, 64, 64, 8))
	receiveN(t, l[1], 5)
	if k := receiveSome(t, l[1]); k != 0 || l[1].Stats().ReceivedFrames != before.ReceivedFrames {
		t.Errorf("%d packets came twice; %+v", k, l[1].Stats())
	}
	back := routeTo(t, l[1], l[0])
	sendAll(t, l[1], numbered(back, l[1].Capabilities(), 0, 8, 1024, 8))
	receiveN(t, l[0], 3)
	if s := l[1].Stats(); s.SentFrames != before.SentFrames {
		t.Errorf("%d frames were sent beside the firewall", s.SentFrames-before.SentFrames)
	}
	for mode, want := range map[packet.Mode]string{packet.Auto: "no frames: the system has a firewall, which they would pass by",
		packet.On: usesFrames} {
		n.in(1, func() error {
			other, err := Open(Config{Addr: n.v4[1], Port: 4792, Frames: mode})
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
