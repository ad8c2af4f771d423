package udp

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/link/packet"
)

// nftChain makes an nftables table of family inet in this network namespace, with a chain at a hook and, if rule is
// set, a rule in it that matches everything and does nothing.
func nftChain(name string, hook uint32, rule bool) error {
	const inet = unix.NFPROTO_INET
	const create = unix.NLM_F_REQUEST | unix.NLM_F_CREATE
	var batch []byte
	message := func(kind, flags uint16, family, subsystem byte, attributes []byte) {
		b := make([]byte, unix.SizeofNlMsghdr+4, 64)
		b[unix.SizeofNlMsghdr], b[unix.SizeofNlMsghdr+3] = family, subsystem
		b = append(b, attributes...)
		binary.NativeEndian.PutUint32(b, uint32(len(b)))
		binary.NativeEndian.PutUint16(b[4:], kind)
		binary.NativeEndian.PutUint16(b[6:], flags)
		batch = append(batch, b...)
	}
	attribute := func(b []byte, kind uint16, value []byte) []byte {
		b = binary.NativeEndian.AppendUint16(b, uint16(4+len(value)))
		b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
		return append(b, make([]byte, -len(b)&3)...)
	}
	table := func(kind uint16) []byte { return attribute(nil, kind, append([]byte(name), 0)) }
	const nft = unix.NFNL_SUBSYS_NFTABLES << 8
	message(unix.NFNL_MSG_BATCH_BEGIN, unix.NLM_F_REQUEST, 0, unix.NFNL_SUBSYS_NFTABLES, nil)
	message(nft|unix.NFT_MSG_NEWTABLE, create, inet, 0, table(unix.NFTA_TABLE_NAME))
	at := attribute(nil, unix.NFTA_HOOK_HOOKNUM, binary.BigEndian.AppendUint32(nil, hook))
	at = attribute(at, unix.NFTA_HOOK_PRIORITY, make([]byte, 4))
	chain := attribute(table(unix.NFTA_CHAIN_TABLE), unix.NFTA_CHAIN_NAME, []byte("c\x00"))
	chain = attribute(chain, unix.NFTA_CHAIN_HOOK|unix.NLA_F_NESTED, at)
	chain = attribute(chain, unix.NFTA_CHAIN_TYPE, []byte("filter\x00"))
	if !rule {
		message(nft|unix.NFT_MSG_NEWCHAIN, create|unix.NLM_F_ACK, inet, 0, chain)
	} else {
		message(nft|unix.NFT_MSG_NEWCHAIN, create, inet, 0, chain)
		message(nft|unix.NFT_MSG_NEWRULE, create|unix.NLM_F_APPEND|unix.NLM_F_ACK, inet, 0,
			attribute(table(unix.NFTA_RULE_TABLE), unix.NFTA_RULE_CHAIN, []byte("c\x00")))
	}
	message(unix.NFNL_MSG_BATCH_END, unix.NLM_F_REQUEST, 0, unix.NFNL_SUBSYS_NFTABLES, nil)
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, err := unix.Read(fd, answer)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return errors.New("no answer")
	}
	if e := -int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); e != 0 {
		return unix.Errno(e)
	}
	return nil
}

// Hooks of nftables (linux/netfilter.h).
const (
	inputHook   = 1
	forwardHook = 2
)

// TestFramesStayBesideIdleChains: chains that cannot affect packets to this host, such as those without rules or for
// forwarded packets, do not count as a firewall.
func TestFramesStayBesideIdleChains(t *testing.T) {
	n := newNamespaces(t, 1500)
	made := make(chan error, 2)
	n.in(1, func() error {
		made <- nftChain("empty", inputHook, false)
		made <- nftChain("passing", forwardHook, true)
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
	n := newNamespaces(t, 1500)
	l := n.pairOf([2]Config{}, false)
	if s := l[1].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	made := make(chan error, 1)
	n.in(1, func() error { made <- nftChain("guard", inputHook, true); return nil })
	if err := <-made; err != nil {
		t.Skipf("this kernel has no nftables: %v", err)
	}
	until(t, "frames are still used beside the firewall", func() bool {
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
	for mode, want := range map[packet.Mode]string{packet.Auto: "no frames: the system has a firewall, which they would pass by", packet.On: usesFrames} {
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
