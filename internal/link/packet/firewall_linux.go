package packet

import (
	"encoding/binary"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// firewall tells whether the system filters packets that frames would bypass: by effective nftables
// chains, or tables of the older iptables, in the network namespace in which it was opened.
type firewall struct {
	netfilter int // netlink socket; -1: there is no nftables
	names     *os.File
	answer    [8 << 10]byte
}

// Messages of nftables (linux/netfilter/nfnetlink.h, nf_tables.h).
const (
	nfnetlinkLen = 4
	getChain     = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETCHAIN
	newChain     = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWCHAIN

	accept      = uint32(1) // NF_ACCEPT
	forwardHook = 2         // NF_INET_FORWARD
	otherHook   = 255       // number not given
)

// tables is the directory in which the kernel lists the tables of the older iptables.
const tables = "/proc/thread-self/net/"

func openFirewall(addr netip.Addr) (f *firewall, err error) {
	f = &firewall{}
	f.netfilter, err = netlinkSocket(unix.NETLINK_NETFILTER, 0)
	if err != nil {
		f.netfilter = -1 // a kernel without it
	}
	name := "ip_tables_names"
	if !addr.Is4() {
		name = "ip6_tables_names"
	}
	f.names, err = os.Open(tables + name)
	if os.IsPermission(err) {
		err = &unavailableError{"only root may see whether there is a firewall (" + tables + name + ")"}
	}
	if err != nil && !os.IsNotExist(err) {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *firewall) close() {
	if f.netfilter >= 0 {
		unix.Close(f.netfilter)
	}
	if f.names != nil {
		_ = f.names.Close()
	}
}

// stands reports whether there is a firewall, or whether that cannot be determined.
func (f *firewall) stands() bool { return f.oldTables() || f.chains() }

func (f *firewall) oldTables() bool {
	if f.names == nil {
		return false
	}
	n, _ := f.names.ReadAt(f.answer[:1], 0)
	return n > 0
}

// chains asks nftables for its chains, of all families, and reports whether one may affect a frame.
func (f *firewall) chains() bool {
	if f.netfilter < 0 {
		return false
	}
	ask := request(nil, getChain, unix.NLM_F_REQUEST|unix.NLM_F_DUMP, make([]byte, nfnetlinkLen))
	if unix.Sendto(f.netfilter, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return true
	}
	found := false
	for {
		n, err := unix.Read(f.netfilter, f.answer[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return true
		}
		for b := f.answer[:n]; ; {
			kind, body, rest := nextMessage(b)
			if body == nil {
				break
			}
			switch kind {
			case newChain:
				found = found || acts(body)
			case unix.NLMSG_DONE:
				return found
			case unix.NLMSG_ERROR:
				return found || refused(body)
			}
			b = rest
		}
	}
}

// acts reports whether a chain may affect a packet that is sent or received here: it is attached to a
// hook, has rules or a drop policy, and does not only concern packets forwarded to other hosts. Empty and
// forwarding chains are common where container networks are set up.
func acts(body []byte) bool {
	if len(body) < nfnetlinkLen {
		return true
	}
	family, at, policy, rules := body[0], -1, accept, uint32(0)
	for b := body[nfnetlinkLen:]; ; {
		kind, value, rest, ok := nextAttribute(b)
		if !ok {
			break
		}
		switch kind {
		case unix.NFTA_CHAIN_HOOK:
			at = hookOf(value)
		case unix.NFTA_CHAIN_POLICY:
			policy = bigEndian(value, policy)
		case unix.NFTA_CHAIN_USE:
			rules = bigEndian(value, rules)
		}
		b = rest
	}
	switch {
	case at < 0: // only reached by jumps, if at all
		return false
	case at == forwardHook && (family == unix.NFPROTO_INET || family == unix.NFPROTO_IPV4 || family == unix.NFPROTO_IPV6):
		return false
	}
	return rules > 0 || policy != accept
}

// hookOf decodes the number of a chain's hook.
func hookOf(b []byte) int {
	for {
		kind, value, rest, ok := nextAttribute(b)
		if !ok {
			return otherHook
		}
		if kind == unix.NFTA_HOOK_HOOKNUM {
			return int(bigEndian(value, otherHook))
		}
		b = rest
	}
}

// bigEndian decodes an nftables number; if there is none it returns none.
func bigEndian(b []byte, none uint32) uint32 {
	if len(b) < 4 {
		return none
	}
	return binary.BigEndian.Uint32(b)
}

// refused reports whether an error is anything but the lack of nftables in this kernel.
func refused(body []byte) bool {
	if len(body) < 4 {
		return true
	}
	switch unix.Errno(-int32(binary.NativeEndian.Uint32(body))) {
	case 0, unix.EINVAL, unix.EOPNOTSUPP, unix.ENOENT, unix.EPROTONOSUPPORT:
		return false
	}
	return true
}
