package packet

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// chainOf returns what follows the netlink header of a chain: its family and, where they are not negative, its hook,
// policy and number of rules.
func chainOf(family byte, hook, policy, rules int) []byte {
	value := func(v int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }
	b := request(nil, newChain, 0, []byte{family, 0, 0, 0})
	b = attribute(b, unix.NFTA_CHAIN_NAME, []byte("c\x00"))
	if hook >= 0 {
		at := attribute(request(nil, 0, 0, nil), unix.NFTA_HOOK_HOOKNUM, value(hook))
		at = attribute(at, unix.NFTA_HOOK_PRIORITY, value(0))
		b = attribute(b, unix.NFTA_CHAIN_HOOK|unix.NLA_F_NESTED, at[unix.SizeofNlMsghdr:])
	}
	if policy >= 0 {
		b = attribute(b, unix.NFTA_CHAIN_POLICY, value(policy))
	}
	if rules >= 0 {
		b = attribute(b, unix.NFTA_CHAIN_USE, value(rules))
	}
	return b[unix.SizeofNlMsghdr:]
}

func TestWhichChainsAct(t *testing.T) {
	const input, forward, drop = 1, forwardHook, 0
	for _, c := range []struct {
		name string
		body []byte
		want bool
	}{
		{"others jump to it", chainOf(unix.NFPROTO_IPV4, -1, -1, 3), false},
		{"without rules", chainOf(unix.NFPROTO_INET, input, int(accept), 0), false},
		{"with a rule", chainOf(unix.NFPROTO_INET, input, int(accept), 1), true},
		{"drops", chainOf(unix.NFPROTO_IPV6, input, drop, 0), true},
		{"passing on", chainOf(unix.NFPROTO_IPV4, forward, drop, 2), false},
		{"passing on, both families", chainOf(unix.NFPROTO_INET, forward, int(accept), 2), false},
		{"a bridge", chainOf(unix.NFPROTO_BRIDGE, forward, int(accept), 2), true},
		{"the ingress of a device", chainOf(unix.NFPROTO_NETDEV, 0, int(accept), 1), true},
		{"cut short", []byte{unix.NFPROTO_INET}, true},
	} {
		if got := acts(c.body); got != c.want {
			t.Errorf("%s: acts is %v, want %v", c.name, got, c.want)
		}
	}
}

func FuzzChain(f *testing.F) {
	f.Add(chainOf(unix.NFPROTO_INET, 1, 0, 2))
	f.Fuzz(func(t *testing.T, b []byte) { acts(b) })
}
