// Package filter decides which received frames an Ethernet function passes on: by their destination, their VLAN, their length
// and their source (WinOF 5.50, 4.6.3 and 4.6.6: MaxNumOfMCList, *PriorityVLANTag, PromiscuousVlan, VlanId, *JumboPacket).
package filter

import (
	"math/bits"
	"slices"

	"github.com/softvpi/softvpi/wire/eth"
)

// Mode is a set of kinds of frames that are passed on, as NDIS numbers them: what "mlxtool show packet-filter" shows
// (WinOF 5.50, 5.5.3.1).
type Mode uint32

// The kinds.
const (
	Directed     Mode = 0x01 // to the function's own address
	Multicast    Mode = 0x02 // to groups on its list
	AllMulticast Mode = 0x04 // to any group
	Broadcast    Mode = 0x08
	Promiscuous  Mode = 0x20 // to anybody
)

// Usual is what a host's network stack asks for.
const Usual = Directed | Multicast | Broadcast

// Verdict is what a filter says of a frame.
type Verdict uint8

// The verdicts; all but Pass drop the frame.
const (
	Pass      Verdict = iota
	OtherMAC          // it is to another station, or to a group or everybody and these are not asked for
	OtherVLAN         // it is in a VLAN that is not asked for
	TooLong           // it is longer than *JumboPacket
	Own               // its source is the function itself, which has come back or is somebody else's as well
	verdicts
)

// Verdicts is how many verdicts there are.
const Verdicts = int(verdicts)

// tags of *PriorityVLANTag.
const vlanTags = 2

// Config is how a Filter works.
type Config struct {
	// MAC is the function's address.
	MAC eth.MAC
	// Groups is how many addresses of groups are filtered (MaxNumOfMCList): with more on the list frames to any group pass.
	Groups int
	// MaxFrame is the longest frame in bytes, without tags and FCS (*JumboPacket).
	MaxFrame int
	// Tags is which parts of tags are understood (*PriorityVLANTag): bit 0 priorities, bit 1 VLANs.
	Tags uint8
	// AnyVLAN passes frames of every VLAN (PromiscuousVlan).
	AnyVLAN bool
	// VLAN is the one of all of the function's frames (VlanId); 0: frames are not in a VLAN, or in one of those added.
	VLAN uint16
}

// Filter is the filter of a function.
type Filter struct {
	cfg    Config
	mode   Mode
	groups []eth.MAC // sorted
	vlans  [4096 / 64]uint64
}

// New returns a filter that passes what is Usual.
func New(cfg Config) *Filter {
	f := &Filter{cfg: cfg, mode: Usual}
	if cfg.VLAN != 0 {
		f.AddVLAN(cfg.VLAN)
	}
	return f
}

// Change changes how the filter works; mode, groups and VLANs that were added stay.
func (f *Filter) Change(cfg Config) {
	old := f.cfg.VLAN
	f.cfg = cfg
	if old != 0 {
		f.RemoveVLAN(old)
	}
	if cfg.VLAN != 0 {
		f.AddVLAN(cfg.VLAN)
	}
}

// SetMode changes what is passed on.
func (f *Filter) SetMode(m Mode) { f.mode = m }

// Mode returns what is passed on.
func (f *Filter) Mode() Mode { return f.mode }

// SetGroups replaces the list of groups, and reports whether it is longer than what is filtered: then frames to any group
// pass, if the mode has Multicast, and the host filters.
func (f *Filter) SetGroups(list []eth.MAC) (over bool) {
	f.groups = append(f.groups[:0], list...)
	slices.SortFunc(f.groups, compare)
	f.groups = slices.Compact(f.groups)
	return f.Over()
}

// Groups returns the list of groups.
func (f *Filter) Groups() []eth.MAC { return f.groups }

// Over reports whether more groups are on the list than are filtered.
func (f *Filter) Over() bool { return len(f.groups) > f.cfg.Groups }

// AddVLAN passes frames of a VLAN.
func (f *Filter) AddVLAN(id uint16) { f.vlans[id>>6&63] |= 1 << (id & 63) }

// RemoveVLAN no longer passes frames of a VLAN, unless all frames are in it.
func (f *Filter) RemoveVLAN(id uint16) {
	if id != f.cfg.VLAN {
		f.vlans[id>>6&63] &^= 1 << (id & 63)
	}
}

// VLANs returns those whose frames pass.
func (f *Filter) VLANs() (list []uint16) {
	for i, word := range f.vlans {
		for ; word != 0; word &= word - 1 {
			list = append(list, uint16(i<<6+bits.TrailingZeros64(word)))
		}
	}
	return list
}

// Judge says whether a frame passes. whole is false for a frame that only memory carries, larger than those of a wire.
func (f *Filter) Judge(h *eth.Headers, frame []byte, whole bool) Verdict {
	dst, src := eth.MAC(frame), eth.MAC(frame[6:])
	switch {
	case !f.addressed(dst):
		return OtherMAC
	case !f.inVLAN(h):
		return OtherVLAN
	case whole && f.Long(h, frame):
		return TooLong
	case src == f.cfg.MAC:
		return Own
	}
	return Pass
}

// Long reports whether a frame is longer than frames may be, not counting its tags.
func (f *Filter) Long(h *eth.Headers, frame []byte) bool {
	return len(frame)-eth.VLANLen*int(h.Tags) > f.cfg.MaxFrame
}

// addressed reports whether frames to an address pass.
func (f *Filter) addressed(dst eth.MAC) bool {
	switch {
	case f.mode&Promiscuous != 0:
		return true
	case dst[0]&1 == 0:
		return f.mode&Directed != 0 && dst == f.cfg.MAC
	case dst == eth.Broadcast:
		return f.mode&Broadcast != 0
	case f.mode&AllMulticast != 0:
		return true
	case f.mode&Multicast == 0:
		return false
	case f.Over():
		return true
	}
	_, found := slices.BinarySearchFunc(f.groups, dst, compare)
	return found
}

// inVLAN reports whether a frame is in a VLAN whose frames pass. One without a tag or with a priority only is in none, and
// passes unless all frames are in a VLAN.
func (f *Filter) inVLAN(h *eth.Headers) bool {
	if f.cfg.AnyVLAN || f.mode&Promiscuous != 0 {
		return true
	}
	id := h.TCI & eth.VIDMask
	switch {
	case id == 0 && h.Tags < 2:
		return f.cfg.VLAN == 0 && (h.Tags == 0 || f.cfg.Tags != 0)
	case f.cfg.Tags&vlanTags == 0:
		return false
	}
	return f.vlans[id>>6]>>(id&63)&1 != 0
}

func compare(a, b eth.MAC) int { return slices.Compare(a[:], b[:]) }
