package sa

import (
	"net/netip"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Path asks for a reversible path between two ports, in a given partition unless key is 0 (IBA 15.2.5.16).
func Path(from, to ib.GID, key ib.PKey) Request {
	r := mad.PathRecord{SGID: from, DGID: to, PKey: key, Reversible: true, NumPath: 1}
	q := Request{Method: mad.MethodGet, Attribute: mad.AttrPathRecord, Data: r.Append(nil),
		Mask: mad.PathSGID | mad.PathDGID | mad.PathReversible | mad.PathNumPath}
	if key != 0 {
		q.Mask |= mad.PathPKey
	}
	return q
}

// Join makes a port a full or send-only member of a group, and creates the group as described by the
// record if it does not exist (IBA 15.2.5.17). As in other InfiniBand stacks, zero fields besides MGID,
// PortGID and PKey are significant too; MTU and rate are left to the administration.
func Join(r mad.MCMemberRecord) Request {
	return Request{Method: mad.MethodSet, Attribute: mad.AttrMCMemberRecord, Data: r.Append(nil),
		Mask: mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState | mad.MemberPKey | mad.MemberQKey | mad.MemberSL |
			mad.MemberFlowLabel | mad.MemberTrafficClass}
}

// Leave ends a membership.
func Leave(mgid, port ib.GID, state uint8) Request {
	r := mad.MCMemberRecord{MGID: mgid, PortGID: port, JoinState: state}
	return Request{Method: mad.MethodDelete, Attribute: mad.AttrMCMemberRecord, Data: r.Append(nil),
		Mask: mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState}
}

// GUIDs asks for entries of a block of a port's GUIDInfo, bit i of entries for entry i: those in table, or any that the administration
// chooses where that is 0 (IBA 15.2.5.18). Return undoes it.
func GUIDs(lid ib.LID, block, entries uint8, table mad.GUIDInfo) Request {
	r := mad.GUIDInfoRecord{LID: lid, Block: block, Table: table}
	return Request{Method: mad.MethodSet, Attribute: mad.AttrGUIDInfoRecord, Data: r.Append(nil),
		Mask: mad.GUIDComponentLID | mad.GUIDComponentBlock | uint64(entries)*mad.GUIDComponentFirst}
}

// ReturnGUIDs gives entries of a block back.
func ReturnGUIDs(lid ib.LID, block, entries uint8) Request {
	r := GUIDs(lid, block, entries, mad.GUIDInfo{})
	r.Method = mad.MethodDelete
	return r
}

const (
	// atsName and atsID identify the service by which ports are found by their IP addresses: the DAPL
	// Address Translation Service. Its record has the address in its first 16 bytes of data, an IPv4
	// address in the last four of them.
	atsName = "DAPL Address Translation Service"
	atsID   = 0x10000ce100415453
	atsNext = 1 << 24 // distance of the IDs of a port's addresses, because ID, GID and P_Key identify a record
	// MaxATS is how many addresses a port may offer.
	MaxATS = 256
)

func ats(ip netip.Addr) (r mad.ServiceRecord) {
	copy(r.Name[:], atsName)
	if ip.Is4() {
		v := ip.As4()
		copy(r.Data[12:], v[:])
	} else {
		v := ip.As16()
		copy(r.Data[:], v[:])
	}
	return r
}

// Offer registers IP address n (from 0) of a port. lease is in seconds.
func Offer(ip netip.Addr, n int, port ib.GID, key ib.PKey, lease uint32) Request {
	r := ats(ip)
	r.ID, r.GID, r.PKey, r.Lease = atsID+uint64(n%MaxATS)*atsNext, port, key, lease
	return Request{Method: mad.MethodSet, Attribute: mad.AttrServiceRecord, Data: r.Append(nil),
		Mask: mad.ServiceComponentID | mad.ServiceComponentGID | mad.ServiceComponentPKey | mad.ServiceComponentLease |
			mad.ServiceComponentName | addressMask}
}

// Withdraw ends the registration of address n.
func Withdraw(n int, port ib.GID, key ib.PKey) Request {
	r := mad.ServiceRecord{ID: atsID + uint64(n%MaxATS)*atsNext, GID: port, PKey: key}
	return Request{Method: mad.MethodDelete, Attribute: mad.AttrServiceRecord, Data: r.Append(nil),
		Mask: mad.ServiceComponentID | mad.ServiceComponentGID | mad.ServiceComponentPKey}
}

// Find asks which port has an IP address.
func Find(ip netip.Addr) Request {
	r := ats(ip)
	return Request{Method: mad.MethodGet, Attribute: mad.AttrServiceRecord, Data: r.Append(nil),
		Mask: mad.ServiceComponentName | addressMask}
}

// addressMask selects the sixteen components of the first 16 bytes of a service's data.
const addressMask = 0xffff * mad.ServiceComponentData8
