package subnet

import (
	"fmt"

	"github.com/softvpi/softvpi/wire/mad"
)

// describeTrap returns a notice in words (IBA 14.2.5.1).
func describeTrap(n *mad.Notice) string {
	if !n.IsGeneric {
		return fmt.Sprintf("vendor trap of vendor %#06x, device %d, from LID %d", n.ProducerType, n.TrapNumber, n.IssuerLID)
	}
	d := &n.DataDetails
	switch n.TrapNumber {
	case mad.TrapLinkStateChange:
		return fmt.Sprintf("trap 128 from LID %d: a link of the switch with LID %d has changed its state", n.IssuerLID,
			mad.ParseTrapSwitch(d).LID)
	case mad.TrapLinkIntegrity, mad.TrapBufferOverrun, mad.TrapFlowControl:
		t := mad.ParseTrapPort(d)
		what := map[uint16]string{mad.TrapLinkIntegrity: "local link integrity threshold reached",
			mad.TrapBufferOverrun: "excessive buffer overrun threshold reached",
			mad.TrapFlowControl:   "flow control update watchdog timer expired"}[n.TrapNumber]
		return fmt.Sprintf("trap %d from LID %d: %s at LID %d port %d", n.TrapNumber, n.IssuerLID, what, t.LID, t.Port)
	case mad.TrapCapabilityMask:
		t := mad.ParseTrapCapability(d)
		return fmt.Sprintf("trap 144 from LID %d: the capabilities of LID %d are now %#08x", n.IssuerLID, t.LID, t.CapabilityMask)
	case mad.TrapSystemImageGUID:
		t := mad.ParseTrapSystemImage(d)
		return fmt.Sprintf("trap 145 from LID %d: the system image GUID of LID %d is now %#016x", n.IssuerLID, t.LID, t.SystemImageGUID)
	case mad.TrapBadMKey:
		t := mad.ParseTrapMKey(d)
		return fmt.Sprintf("trap 256 from LID %d: a request with the wrong M_Key came to LID %d from LID %d: method %#x, attribute %#04x",
			n.IssuerLID, t.LID, t.DrSLID, t.Method, t.AttributeID)
	case mad.TrapBadPKey, mad.TrapBadQKey:
		t := mad.ParseTrapKey(d)
		kind := "P_Key"
		if n.TrapNumber == mad.TrapBadQKey {
			kind = "Q_Key"
		}
		return fmt.Sprintf("trap %d from LID %d: a packet from LID %d QP %d to LID %d QP %d had the wrong %s %#x", n.TrapNumber,
			n.IssuerLID, t.LID1, t.QP1, t.LID2, t.QP2, kind, t.Key)
	case mad.TrapBadPKeySwitchPort:
		t := mad.ParseTrapSwitchPKey(d)
		return fmt.Sprintf("trap 259 from LID %d: a packet from LID %d to LID %d had the wrong P_Key %#04x at port %d of the switch with LID %d", n.IssuerLID, t.LID1, t.LID2, uint16(t.PKey), t.Port, t.SwitchLID)
	}
	return fmt.Sprintf("trap %d from LID %d", n.TrapNumber, n.IssuerLID)
}
