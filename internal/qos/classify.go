package qos

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
)

// Classifier says which priority received frames have (WinOF-2 Ethernet b, Receive Trust State, and RCM with Untagged Traffic). The
// zero value goes by tags, and gives frames without one priority 0.
type Classifier struct {
	// ByDSCP says that IP packets have the priority of their DSCP, whatever their tag says (RxTrustedState 2).
	ByDSCP bool
	// Untagged is the priority of frames that have none (DefaultUntaggedPriority).
	Untagged uint8
	// Lossless says that frames which name no priority are kept like those of priorities that are paused on their own, if there are
	// any (RxUntaggedMapToLossless).
	Lossless bool
}

// OfDSCP returns the priority of a DSCP, by the manual's static table: 0 to 7 is 0, ... 56 to 63 is 7.
func OfDSCP(dscp uint8) uint8 { return dscp >> 3 & 7 }

// OfClass returns the priority of a packet with an IPv4 type of service or an IPv6 traffic class, of which no tag is seen.
func (c *Classifier) OfClass(class uint8) uint8 {
	if c.ByDSCP {
		return class >> 5
	}
	return c.Untagged
}

// Frame returns the priority of a frame that begins with b, whatever it is, and whether the frame names it: by its tag, or its
// DSCP if that is trusted. Otherwise it has that of untagged frames.
func (c *Classifier) Frame(b []byte) (priority uint8, named bool) {
	const typeAt, class4, class6 = 12, 15, 14 // of the type, and of the IP header's fields, in a frame without a tag
	if len(b) < eth.EthernetLen+2 {
		return c.Untagged, false
	}
	t := eth.EtherType(binary.BigEndian.Uint16(b[typeAt:]))
	if t == eth.TypeVLAN {
		priority, named = b[typeAt+2]>>5, true
		if !c.ByDSCP {
			return priority, true
		}
		if b = b[eth.VLANLen:]; len(b) < eth.EthernetLen+2 {
			return priority, true
		}
		t = eth.EtherType(binary.BigEndian.Uint16(b[typeAt:]))
	}
	if c.ByDSCP {
		switch t {
		case eth.TypeIPv4:
			return b[class4] >> 5, true
		case eth.TypeIPv6, eth.TypeRoCEv1: // the GRH of RoCE v1 begins like IPv6 (IBA 8.3)
			return b[class6] & 0xf >> 1, true
		}
	}
	if named {
		return priority, true
	}
	return c.Untagged, false
}
