package eswitch

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/wire/eth"
)

// VLAN says in which VLANs a function is. The zero value is in none, not even that of frames without a tag.
type VLAN struct {
	// ID is the VLAN of a function that knows nothing of it: frames that it sends get a tag with this ID and Priority, and what arrives
	// with one has it taken out. 0: the function uses tags itself.
	ID       uint16
	Priority uint8
	// Trunk are the VLANs whose tags a function of ID 0 may use, and Untagged says that it may send and get frames without one.
	Trunk    bridge.VLANs
	Untagged bool
}

// AnyVLAN is that of a function that may use every tag, and none.
func AnyVLAN() VLAN { return VLAN{Trunk: bridge.AllVLANs(), Untagged: true} }

func (v *VLAN) check() error {
	switch {
	case v.ID > bridge.LastVLAN:
		return &FieldError{"VLAN", v.ID, "0 to 4094"}
	case v.Priority > 7:
		return &FieldError{"priority of the VLAN", v.Priority, "0 to 7"}
	case v.ID == 0 && v.Priority != 0:
		return &FieldError{"priority of the VLAN", v.Priority, "0 without a VLAN ID"}
	case v.ID != 0 && (v.Untagged || v.Trunk.Len() != 0):
		return &FieldError{"VLAN", v.ID, "0 for a function with tags of its own"}
	}
	return nil
}

// has reports whether frames of a VLAN, 0 for those without, are for the function.
func (v *VLAN) has(id uint16) bool {
	switch {
	case v.ID != 0:
		return id == v.ID
	case id == 0:
		return v.Untagged
	}
	return v.Trunk.Has(id)
}

// meets reports whether there is a VLAN that both have.
func (v *VLAN) meets(o *VLAN) bool {
	switch {
	case v.ID != 0:
		return o.has(v.ID)
	case o.ID != 0:
		return v.has(o.ID)
	case v.Untagged && o.Untagged:
		return true
	}
	for i := range v.Trunk {
		if v.Trunk[i]&o.Trunk[i] != 0 {
			return true
		}
	}
	return false
}

// Tag is what becomes of a frame's VLAN tag on the way to one port.
type Tag uint8

// The changes.
const (
	Keep    Tag = iota // none
	Insert             // one with the Delivery's TCI is put in
	Replace            // the frame's gets the Delivery's TCI
	Strip              // the frame's is taken out
)

// header is what the switch looks at of a frame.
type header struct {
	dst, src uint64
	tagged   bool
	tci      uint16
	of       eth.EtherType // behind the tag; a second tag is a type of its own
	network  int
	// vid is the frame's VLAN in the switch, and carry the tag that it gets there; 0: what it has is right.
	vid, carry uint16
}

// parse reports whether a frame has a whole header.
func (h *header) parse(b []byte) bool {
	if len(b) < eth.EthernetLen {
		return false
	}
	h.dst, h.src, h.network = number(b), number(b[6:]), eth.EthernetLen
	h.of = eth.EtherType(binary.BigEndian.Uint16(b[12:]))
	if h.of != eth.TypeVLAN {
		return true
	}
	if len(b) < eth.EthernetLen+eth.VLANLen {
		return false
	}
	h.tagged, h.tci = true, binary.BigEndian.Uint16(b[14:])
	h.of, h.network = eth.EtherType(binary.BigEndian.Uint16(b[16:])), eth.EthernetLen+eth.VLANLen
	return true
}

// enter finds the VLAN of a frame that a function sends; false: it may not send this one. A tag that is only a priority is none.
func (h *header) enter(v *VLAN) bool {
	if h.tagged {
		h.vid = h.tci & eth.VIDMask
	}
	if v.ID == 0 {
		return v.has(h.vid)
	}
	if h.vid != 0 {
		return false
	}
	h.vid, h.carry = v.ID, uint16(v.Priority)<<13|v.ID
	return true
}

// leave returns what becomes of the tag at a port; v is nil for the wire.
func (h *header) leave(v *VLAN) (Tag, uint16) {
	switch {
	case v != nil && v.ID != 0:
		if h.tagged {
			return Strip, 0
		}
	case h.carry == 0:
	case h.tagged:
		return Replace, h.carry
	default:
		return Insert, h.carry
	}
	return Keep, 0
}

// Append adds a frame to b as a delivery has it.
func (d *Delivery) Append(b, frame []byte) []byte {
	const macs = 12
	switch d.Tag {
	case Insert:
		b = append(b, frame[:macs]...)
		b = binary.BigEndian.AppendUint16(b, uint16(eth.TypeVLAN))
		b = binary.BigEndian.AppendUint16(b, d.TCI)
		return append(b, frame[macs:]...)
	case Replace:
		b = append(b, frame[:macs+2]...)
		b = binary.BigEndian.AppendUint16(b, d.TCI)
		return append(b, frame[macs+eth.VLANLen:]...)
	case Strip:
		b = append(b, frame[:macs]...)
		return append(b, frame[macs+eth.VLANLen:]...)
	}
	return append(b, frame...)
}
