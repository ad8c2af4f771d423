package bridge

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/wire/eth"
)

// LastVLAN is the last VLAN ID that frames may have (IEEE 802.1Q, table 9-2).
const LastVLAN = 4094

// DefaultVLAN is the PVID of a port that is not configured (IEEE 802.1Q, 9.6).
const DefaultVLAN = 1

// VLANs is a set of VLAN IDs, 1 to LastVLAN. The zero value is empty.
type VLANs [(LastVLAN + 64) / 64]uint64

// AllVLANs returns the set of all VLAN IDs.
func AllVLANs() (v VLANs) {
	for id := uint16(1); id <= LastVLAN; id++ {
		v.Add(id)
	}
	return v
}

// Add puts an ID from 1 to LastVLAN into the set.
func (v *VLANs) Add(id uint16) { v[id/64] |= 1 << (id % 64) }

// Remove takes a VLAN out of the set.
func (v *VLANs) Remove(id uint16) { v[id/64] &^= 1 << (id % 64) }

// Has reports whether an ID is in the set.
func (v *VLANs) Has(id uint16) bool { return id <= LastVLAN && v[id/64]>>(id%64)&1 != 0 }

// Len returns the number of IDs in the set.
func (v *VLANs) Len() (n int) {
	for _, w := range v {
		n += bits.OnesCount64(w)
	}
	return n
}

// ParseVLANs parses IDs and ranges of them that "+" joins, as 10+20-29, or "all".
func ParseVLANs(s string) (v VLANs, err error) {
	if s == "all" {
		return AllVLANs(), nil
	}
	for part := range strings.SplitSeq(s, "+") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		from, to := parseVLAN(low), parseVLAN(high)
		if from == 0 || to < from {
			return VLANs{}, fmt.Errorf("%q is no VLAN ID from 1 to %d and no range of them", part, LastVLAN)
		}
		for id := from; id <= to; id++ {
			v.Add(id)
		}
	}
	return v, nil
}

// parseVLAN returns a VLAN ID; 0: it is none.
func parseVLAN(s string) uint16 {
	if n, err := strconv.ParseUint(s, 10, 16); err == nil && n <= LastVLAN {
		return uint16(n)
	}
	return 0
}

// String returns the set as ParseVLANs takes it; empty: it has no IDs.
func (v VLANs) String() string {
	if v == AllVLANs() {
		return "all"
	}
	var parts []string
	for id := uint16(1); id <= LastVLAN; id++ {
		if !v.Has(id) {
			continue
		}
		first := id
		for v.Has(id + 1) {
			id++
		}
		if first == id {
			parts = append(parts, strconv.Itoa(int(id)))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", first, id))
		}
	}
	return strings.Join(parts, "+")
}

// tagged reports whether a frame of at least eth.EthernetLen bytes has a VLAN tag.
func tagged(b []byte) bool {
	return b[12] == byte(eth.TypeVLAN>>8) && b[13] == byte(eth.TypeVLAN&0xff)
}
