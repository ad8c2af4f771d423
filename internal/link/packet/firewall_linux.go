package packet

import (
	"encoding/binary"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// firewall tells whether the system filters packets where frames pass by: tables of nftables, or
// those of the older iptables, in the network namespace in which it was opened.
type firewall struct {
	netfilter int // netlink socket; -1: there is no nftables
	names     *os.File
	answer    [8 << 10]byte
}

// Messages of nftables (linux/netfilter/nfnetlink.h, nf_tables.h).
const (
	nfnetlinkLen = 4
	getTable     = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETTABLE
	newTable     = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWTABLE
)

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
	f.names, err = os.Open("/proc/thread-self/net/" + name)
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
func (f *firewall) stands() bool { return f.oldTables() || f.tables() }

func (f *firewall) oldTables() bool {
	if f.names == nil {
		return false
	}
	n, _ := f.names.ReadAt(f.answer[:1], 0)
	return n > 0
}

// tables asks nftables for its tables, of all families.
func (f *firewall) tables() bool {
	if f.netfilter < 0 {
		return false
	}
	ask := request(nil, getTable, unix.NLM_F_REQUEST|unix.NLM_F_DUMP, make([]byte, nfnetlinkLen))
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
			case newTable:
				found = true
			case unix.NLMSG_DONE:
				return found
			case unix.NLMSG_ERROR:
				return found || refused(body)
			}
			b = rest
		}
	}
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
