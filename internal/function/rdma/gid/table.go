// Package gid implements the GID table of a port, and derives GIDs, MACs and GUIDs that are not
// configured.
package gid

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/link"
)

// Most is the number of rows of a port's GID table.
const Most = 128

// Table is the GID table of a port. A row keeps its index as long as its address exists; after that it is
// empty until a new address takes it.
type Table struct {
	rows   []row
	unused int // addresses that had no room
}

type row struct {
	addr netip.Addr // whose bytes are the GID, and where packets come from; for v1 the IPv6 form of the GID
	mode encap.Mode
}

// Set makes the rows those of a port with this mode, MAC, VLAN (0: none) and addresses, and
// reports whether anything changed.
func (t *Table) Set(mode encap.Mode, mac [6]byte, vlan uint16, addrs []netip.Addr) bool {
	var want []row
	unused := 0
	switch mode {
	case encap.RoCEv1:
		want = append(want, row{FromMAC(mac, vlan), encap.RoCEv1})
	case encap.RoCEv125, encap.RoCEv2:
		for _, a := range addrs {
			r := row{a, mode}
			switch {
			case slices.Contains(want, r):
			case len(want) < Most:
				want = append(want, r)
			default:
				unused++
			}
		}
	}
	changed := unused != t.unused
	t.unused = unused
	for i := range t.rows {
		if t.rows[i] != (row{}) && !slices.Contains(want, t.rows[i]) {
			t.rows[i] = row{}
			changed = true
		}
	}
	for _, r := range want {
		if slices.Contains(t.rows, r) {
			continue
		}
		changed = true
		if i := slices.Index(t.rows, row{}); i >= 0 {
			t.rows[i] = r
		} else {
			t.rows = append(t.rows, r)
		}
	}
	return changed
}

// Row returns the address of row i. The error is a *command.Error, Invalid where the row is empty.
func (t *Table) Row(i uint32) (netip.Addr, error) {
	if i >= uint32(len(t.rows)) || t.rows[i] == (row{}) {
		return netip.Addr{}, command.Errorf(command.Invalid, "SrcIndex is %d: no such row in the GID table", i)
	}
	return t.rows[i].addr, nil
}

// SetPort makes the rows those of an InfiniBand port, by their place in its GUIDInfo, and reports whether anything
// changed.
func (t *Table) SetPort(p *link.Port) bool {
	rows := make([]row, min(len(p.GUIDs), Most))
	for i, guid := range p.GUIDs[:len(rows)] {
		if guid != 0 {
			rows[i] = row{Of(p.Prefix, guid), encap.InfiniBand}
		}
	}
	changed := !slices.Equal(rows, t.rows)
	t.rows, t.unused = rows, len(p.GUIDs)-len(rows)
	return changed
}

// Unused is how many addresses of the port found no room.
func (t *Table) Unused() int { return t.unused }

// Has reports whether a is an address of the port.
func (t *Table) Has(a netip.Addr) bool {
	for i := range t.rows {
		if t.rows[i].addr == a {
			return true
		}
	}
	return false
}

// List is the rows that are in use.
func (t *Table) List() []command.GID {
	var out []command.GID
	for i, r := range t.rows {
		if r != (row{}) {
			out = append(out, command.GID{Index: uint32(i), RoCE: uint32(r.mode), GID: r.addr.As16()})
		}
	}
	return out
}

// Index returns the row of an address, 0 where it has none.
func (t *Table) Index(a netip.Addr) uint32 {
	for i := range t.rows {
		if t.rows[i].addr == a {
			return uint32(i)
		}
	}
	return 0
}

// First returns the first address that is, or is not, of IPv4; ok is false where there is none.
func (t *Table) First(is4 bool) (a netip.Addr, ok bool) {
	for i := range t.rows {
		if a := t.rows[i].addr; a.IsValid() && a.Is4() == is4 {
			return a, true
		}
	}
	return netip.Addr{}, false
}
