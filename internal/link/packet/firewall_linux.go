package packet

import (
	"errors"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// firewall tells whether the system filters packets that frames would bypass: by effective nftables
// chains, or tables of the older iptables, in the network namespace in which it was opened.
type firewall struct {
	netfilter *nftables.Conn // nil: the kernel has no netfilter
	names     *os.File
}

const (
	// tables is the directory in which the kernel lists the tables of the older iptables.
	tables = "/proc/thread-self/net/"
	// looks is how often nftables is asked before an error counts: a chain may go between two requests.
	looks = 3
)

func openFirewall(addr netip.Addr) (f *firewall, err error) {
	f = &firewall{}
	if f.netfilter, err = nftables.New(nftables.AsLasting()); err != nil {
		f.netfilter = nil
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
	if f.netfilter != nil {
		_ = f.netfilter.CloseLasting()
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
	var b [1]byte
	n, _ := f.names.ReadAt(b[:], 0)
	return n > 0
}

// chains reports whether nftables has a chain, of any family, that may affect a frame.
func (f *firewall) chains() bool {
	if f.netfilter == nil {
		return false
	}
	for range looks {
		found, err := f.look()
		if found || err == nil {
			return found
		}
	}
	return true
}

func (f *firewall) look() (found bool, err error) {
	all, err := f.netfilter.ListChains()
	if absent(err) {
		return false, nil
	}
	for _, c := range all {
		if found, err := f.acts(c); found || err != nil {
			return found, err
		}
	}
	return false, err
}

// acts reports whether a chain may affect a packet that is sent or received here: it is attached to a
// hook, has rules or a drop policy, and does not only concern packets forwarded to other hosts. Empty and
// forwarding chains are common where container networks are set up.
func (f *firewall) acts(c *nftables.Chain) (bool, error) {
	switch {
	case c.Hooknum == nil: // only reached by jumps, if at all
		return false, nil
	case *c.Hooknum == *nftables.ChainHookForward && isIP(c.Table.Family):
		return false, nil
	case c.Policy != nil && *c.Policy != nftables.ChainPolicyAccept:
		return true, nil
	}
	rules, err := f.netfilter.GetRules(c.Table, c)
	return len(rules) > 0, err
}

// isIP reports whether chains of a family see IP packets only; the hooks of other families have other numbers.
func isIP(f nftables.TableFamily) bool {
	return f == nftables.TableFamilyINet || f == nftables.TableFamilyIPv4 || f == nftables.TableFamilyIPv6
}

// absent reports whether an error says that this kernel has no nftables.
func absent(err error) bool {
	for _, e := range []unix.Errno{unix.EINVAL, unix.EOPNOTSUPP, unix.ENOENT, unix.EPROTONOSUPPORT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
