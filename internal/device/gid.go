package device

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/command"
)

// defaultGIDInterval is UpdateGIDTimerFrequency where it is not set (WinOF manual
// 4.6.9.3).
const defaultGIDInterval = 3 * time.Second

// maxGIDs is how many rows a port's GID table has.
const maxGIDs = 128

// gidTable is the GID table of a port. A row keeps its index while its address
// stands; a row whose address is gone is empty until a new one takes it.
type gidTable struct {
	rows   []gidRow
	unused int // addresses that had no room
}

type gidRow struct {
	gid  [16]byte
	addr netip.Addr // where packets come from; for v1 the IPv6 form of the GID
	roce uint32
}

// macGID is the GID that RoCE v1 makes from a MAC: the link-local IPv6 address
// with the modified EUI-64 (RFC 4291 appendix A, RoCE annex A16).
func macGID(mac [6]byte) netip.Addr {
	return netip.AddrFrom16([16]byte{
		0: 0xfe, 1: 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5],
	})
}

// macFor makes the locally administered MAC of a port whose interface has none.
func macFor(addr netip.Addr) [6]byte {
	b := addr.As16()
	return [6]byte{0x02, 0x56 ^ b[11], b[12], b[13], b[14], b[15]}
}

// guidFor makes the EUI-64 of a port from its MAC. Adapters may share an
// interface, and their GUIDs must differ: what is ff:fe in an EUI-64 made of a
// MAC alone is a hash of the address and UDP port here.
func guidFor(mac [6]byte, addr netip.AddrPort) uint64 {
	h := uint32(2166136261)
	ip := addr.Addr().As16()
	for _, b := range append(ip[:], byte(addr.Port()>>8), byte(addr.Port())) {
		h = (h ^ uint32(b)) * 16777619
	}
	g := uint64(0)
	for _, b := range []byte{mac[0] ^ 2, mac[1], mac[2], byte(h>>24) ^ byte(h>>8), byte(h>>16) ^ byte(h), mac[3], mac[4], mac[5]} {
		g = g<<8 | uint64(b)
	}
	return g
}

// set makes the rows those of a port with this mode, MAC and addresses, and
// reports whether anything changed.
func (t *gidTable) set(roce uint32, mac [6]byte, addrs []netip.Addr) bool {
	var want []gidRow
	unused := 0
	switch roce {
	case RoCEv1:
		a := macGID(mac)
		want = append(want, gidRow{a.As16(), a, RoCEv1})
	case RoCEv125, RoCEv2:
		for _, a := range addrs {
			r := gidRow{a.As16(), a, roce}
			switch {
			case slices.Contains(want, r):
			case len(want) < maxGIDs:
				want = append(want, r)
			default:
				unused++
			}
		}
	}
	changed := unused != t.unused
	t.unused = unused
	for i := range t.rows {
		if t.rows[i] != (gidRow{}) && !slices.Contains(want, t.rows[i]) {
			t.rows[i] = gidRow{}
			changed = true
		}
	}
	for _, r := range want {
		if slices.Contains(t.rows, r) {
			continue
		}
		changed = true
		if i := slices.Index(t.rows, gidRow{}); i >= 0 {
			t.rows[i] = r
		} else {
			t.rows = append(t.rows, r)
		}
	}
	return changed
}

// setGIDs makes the rows those of the port, whose addresses these are, and reports whether
// anything changed.
func (a *adapter) setGIDs(addrs []netip.Addr) bool {
	if a.ib != nil {
		return a.gids.setIB(&a.ib.port)
	}
	return a.gids.set(a.cfg.RoCE, a.mac, addrs)
}

// row returns the address of row i.
func (t *gidTable) row(i uint32) (netip.Addr, error) {
	if i >= uint32(len(t.rows)) || t.rows[i] == (gidRow{}) {
		return netip.Addr{}, command.Errorf(command.Invalid, "SrcIndex is %d: no such row in the GID table", i)
	}
	return t.rows[i].addr, nil
}

// has reports whether a is an address of the port.
func (t *gidTable) has(a netip.Addr) bool {
	for i := range t.rows {
		if t.rows[i].addr == a {
			return true
		}
	}
	return false
}

func (t *gidTable) list() []command.GID {
	var out []command.GID
	for i, r := range t.rows {
		if r != (gidRow{}) {
			out = append(out, command.GID{Index: uint32(i), RoCE: r.roce, GID: r.gid})
		}
	}
	return out
}

// interfaceOf returns the addresses, MAC and MTU of the interface that has addr;
// ok is false where none has it. Addresses with a zone are left out: sockets of
// a port do not carry one.
func interfaceOf(addr netip.Addr) (addrs []netip.Addr, mac [6]byte, mtu int, ok bool) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, mac, 0, false
	}
	for _, i := range ifs {
		list, err := i.Addrs()
		if err != nil {
			continue
		}
		var all []netip.Addr
		mine := false
		for _, a := range list {
			n, isNet := a.(*net.IPNet)
			if !isNet {
				continue
			}
			ip, _ := netip.AddrFromSlice(n.IP)
			ip = ip.Unmap()
			loopback := i.Flags&net.FlagLoopback != 0 && n.Contains(addr.AsSlice())
			if ip == addr || loopback {
				mine = true
			}
			if !ip.IsLinkLocalUnicast() && !ip.IsLoopback() {
				all = append(all, ip)
			}
		}
		if !mine {
			continue
		}
		if len(i.HardwareAddr) == 6 {
			mac = [6]byte(i.HardwareAddr)
		}
		return all, mac, i.MTU, true
	}
	return nil, mac, 0, false
}

// followAddresses looks at the addresses of the interfaces every GIDInterval
// (UpdateGIDTimerFrequency), without the baton, and brings the GID tables up to date.
func (h *Host) followAddresses() {
	defer h.wg.Done()
	every := h.cfg.GIDInterval
	for {
		var due <-chan time.Time // never
		if every > 0 {
			due = time.After(every)
		}
		select {
		case <-h.done:
			return
		case every = <-h.gidInterval:
		case <-due:
			h.UpdateGIDs()
		}
	}
}

// UpdateGIDs looks at the addresses of the interfaces now.
func (h *Host) UpdateGIDs() {
	h.lock()
	adapters := slices.Clone(h.adapters)
	h.unlock()
	for _, a := range adapters {
		if !a.cfg.FollowInterface {
			continue
		}
		addrs, _, _, present := interfaceOf(a.cfg.Addr)
		h.lock()
		a.readdress(addrs, present)
		h.finish()
	}
}

// source returns the address of the port that packets to remote come from: the
// first of remote's family, else the port's first.
func (a *adapter) source(remote netip.Addr) netip.Addr {
	if a.ib != nil {
		return a.ib.source(remote, a.cfg.Addr)
	}
	if a.cfg.Addr.Is4() == remote.Is4() {
		return a.cfg.Addr
	}
	for i := range a.gids.rows {
		if addr := a.gids.rows[i].addr; addr.IsValid() && addr.Is4() == remote.Is4() {
			return addr
		}
	}
	return a.cfg.Addr
}

// index returns the row of an address, 0 where it has none.
func (t *gidTable) index(a netip.Addr) uint32 {
	for i := range t.rows {
		if t.rows[i].addr == a {
			return uint32(i)
		}
	}
	return 0
}

// PortAddresses are the addresses of an adapter's port.
type PortAddresses struct {
	MAC    net.HardwareAddr
	Served []netip.Addr // those in its GID table
	// Most is how many the table has room for, and Unused how many found none.
	Most, Unused int
}

// Addresses returns the addresses of an adapter's port; the zero value where there is no such adapter.
func (h *Host) Addresses(index uint32) PortAddresses {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return PortAddresses{}
	}
	out := PortAddresses{MAC: slices.Clone(a.mac[:]), Most: maxGIDs, Unused: a.gids.unused}
	for _, g := range a.gids.list() {
		out.Served = append(out.Served, netip.AddrFrom16(g.GID).Unmap())
	}
	return out
}
