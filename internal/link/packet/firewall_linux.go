package packet

import (
	"encoding/binary"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// firewall tells whether the system filters packets where frames pass by: chains of nftables that do
// something, or tables of the older iptables, in the network namespace in which it was opened.
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
	otherHook   = 255       // of which the number is not said
)

// tables is where the kernel lists the tables of the older iptables.
const tables = "/proc/thread-self/net/"

func openFirewall(addr netip.Addr) (f *firewall, err error) {
	f = &firewall{}
	f.netfilter, err = netlinkSocket(unix.NETLINK_NETFILTER, 0)
	if err != nil {
		f.netfilter = -1 // a kernel without
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

// stands reports whether there is one, or whether that cannot be told.
func (f *firewall) stands() bool { return f.oldTables() || f.chains() }

func (f *firewall) oldTables() bool {
	if f.names == nil {
		return false
	}
	n, _ := f.names.ReadAt(f.answer[:1], 0)
	return n > 0
}

// chains asks nftables for its chains, of all families, and reports whether one may do something to a frame.
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

// acts reports whether a chain may do something to a packet that is sent or received here: it hangs at a
// hook, has rules or drops what it has none for, and is not about packets that are passed on
// to other hosts alone. Where container networks are set up, empty chains and such for passing on are
// common.
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
	case at < 0: // others jump to it, or nobody
		return false
	case at == forwardHook && (family == unix.NFPROTO_INET || family == unix.NFPROTO_IPV4 || family == unix.NFPROTO_IPV6):
		return false
	}
	return rules > 0 || policy != accept
}

// hookOf reads the number of a chain's hook.
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

// bigEndian is a number of nftables, or what it is where there is none.
func bigEndian(b []byte, none uint32) uint32 {
	if len(b) < 4 {
		return none
	}
	return binary.BigEndian.Uint32(b)
}

// refused reports whether an error is another than that this kernel has no nftables.
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
