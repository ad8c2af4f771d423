package saquery

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// lines prints a record: a title, then pairs of a label with its dots and a value.
func (r *run) lines(title string, pairs ...any) {
	r.Printf("%s\n", title)
	for i := 0; i+1 < len(pairs); i += 2 {
		r.Printf("\t\t%s%v\n", pairs[i], pairs[i+1])
	}
}

// dots returns a label padded with dots to a width.
func dots(label string, width int) string {
	return label + strings.Repeat(".", max(width-len(label), 0))
}

func hex[V ~uint8 | ~uint16 | ~uint32](v V) string { return fmt.Sprintf("0x%X", uint32(v)) }

func gid(g ib.GID) string { return ibdiag.GIDString(g) }

func (r *run) classPortInfo() error {
	if err := r.capabilities(); err != nil {
		return err
	}
	c := &r.caps
	b := c.Append(nil)
	word := func(at int) string { return fmt.Sprintf("0x%08X", binary.BigEndian.Uint32(b[at:])) }
	const w = 25
	r.lines("SA ClassPortInfo:",
		dots("Base version", w), c.BaseVersion, dots("Class version", w), c.ClassVersion, dots("Capability mask", w),
		fmt.Sprintf("0x%04X", c.CapabilityMask),
		dots("Capability mask 2", w), fmt.Sprintf("0x%08X", c.CapabilityMask2), dots("Response time value", w),
		fmt.Sprintf("0x%02X", c.RespTime),
		dots("Redirect GID", w), gid(c.Redirect.GID), dots("Redirect TC/SL/FL", w), word(24), dots("Redirect LID", w), c.Redirect.LID,
		dots("Redirect PKey", w), fmt.Sprintf("0x%04X", uint16(c.Redirect.PKey)), dots("Redirect QP", w), word(32),
		dots("Redirect QKey", w), word(36),
		dots("Trap GID", w), gid(c.Trap.GID), dots("Trap TC/SL/FL", w), word(56), dots("Trap LID", w), c.Trap.LID,
		dots("Trap PKey", w), fmt.Sprintf("0x%04X", uint16(c.Trap.PKey)), dots("Trap HL/QP", w), word(64), dots("Trap QKey", w), word(68))
	return nil
}

// wide is the column at which the values of most records begin, table the one for tables.
const (
	wide  = 24
	table = 27
)

func (r *run) node(b []byte) error {
	n, err := mad.ParseNodeRecord(b)
	if err != nil {
		return err
	}
	i := &n.Info
	kind := i.NodeType.String()
	if i.NodeType < mad.NodeCA || i.NodeType > mad.NodeRouter {
		kind = "UNKNOWN"
	}
	r.lines("NodeRecord dump:",
		dots("lid", wide), n.LID, dots("reserved", wide), hex(binary.BigEndian.Uint16(b[2:])), dots("base_version", wide),
		hex(i.BaseVersion),
		dots("class_version", wide), hex(i.ClassVersion), dots("node_type", wide), kind, dots("num_ports", wide), i.NumPorts,
		dots("sys_guid", wide), ibdiag.Hex64(i.SystemImageGUID), dots("node_guid", wide), ibdiag.Hex64(i.NodeGUID), dots("port_guid", wide),
		ibdiag.Hex64(i.PortGUID),
		dots("partition_cap", wide), hex(i.PartitionCap), dots("device_id", wide), hex(i.DeviceID), dots("revision", wide), hex(i.Revision),
		dots("port_num", wide), i.LocalPortNum, dots("vendor_id", wide), hex(i.VendorID), dots("NodeDescription", wide), r.name(&n))
	return nil
}

func (r *run) portInfo(b []byte) error {
	p, err := mad.ParsePortInfoRecord(b)
	if err != nil {
		return err
	}
	r.Printf("PortInfoRecord dump:\n\tRID\n\t\tEndPortLid..............%d\n\t\tPortNum.................%d\n\t\tOptions.................0x%x\n\tPortInfo dump:\n%s",
		p.EndPortLID, p.PortNum, p.Options, ibdiag.PortInfoLines("\t\t", &p.Info, r.ShowKeys))
	return nil
}

func (r *run) sl2vl(b []byte) error {
	s, err := mad.ParseSLtoVLRecord(b)
	if err != nil {
		return err
	}
	r.lines("SL2VLTableRecord dump:", dots("LID", table), s.LID, dots("InPort", table), s.InPort, dots("OutPort", table), s.OutPort)
	r.Printf("\t\tSL: 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|15|\n\t\tVL:")
	for _, vl := range s.Table {
		r.Printf("%2d|", vl)
	}
	r.Printf("\n")
	return nil
}

func (r *run) vlarb(b []byte) error {
	v, err := mad.ParseVLArbRecord(b)
	if err != nil {
		return err
	}
	r.lines("VLArbTableRecord dump:", dots("LID", table), v.LID, dots("Port", table), v.OutPort, dots("Block", table), v.Block)
	for i := 0; i < len(v.Table); i += 16 {
		r.Printf("\t\tVL    :")
		for _, e := range v.Table[i : i+16] {
			r.Printf("%2d|", e.VL)
		}
		r.Printf("\n\t\tWeight:")
		for _, e := range v.Table[i : i+16] {
			r.Printf("%2d|", e.Weight)
		}
		r.Printf("\n")
	}
	return nil
}

func (r *run) pkeys(b []byte) error {
	p, err := mad.ParsePKeyTableRecord(b)
	if err != nil {
		return err
	}
	r.lines("PKeyTableRecord dump:", dots("LID", table), p.LID, dots("Port", table), p.Port, dots("Block", table), p.Block, "PKey Table:",
		"")
	for i := 0; i < len(p.Table); i += 8 {
		words := make([]string, 8)
		for j, k := range p.Table[i : i+8] {
			words[j] = fmt.Sprintf("0x%04x", uint16(k))
		}
		r.Printf("\t\t%s\n", strings.Join(words, " "))
	}
	r.Printf("\n")
	return nil
}

func (r *run) link(b []byte) error {
	l, err := mad.ParseLinkRecord(b)
	if err != nil {
		return err
	}
	r.lines("LinkRecord dump:", dots("FromLID", table), l.FromLID, dots("FromPort", table), l.FromPort, dots("ToPort", table), l.ToPort,
		dots("ToLID", table), l.ToLID)
	return nil
}

func (r *run) lft(b []byte) error {
	l, err := mad.ParseLFTRecord(b)
	if err != nil {
		return err
	}
	r.lines("LFT Record dump:", dots("LID", table), l.LID, dots("Block", table), l.Block, "LFT:", "")
	r.Printf("\t\tLID\tPort Number\n")
	for i, port := range l.Table {
		r.Printf("\t\t%d\t%d\n", int(l.Block)*len(l.Table)+i, port)
	}
	r.Printf("\n")
	return nil
}

func (r *run) mft(b []byte) error {
	m, err := mad.ParseMFTRecord(b)
	if err != nil {
		return err
	}
	r.lines("MFT Record dump:", dots("LID", table), m.LID, dots("Position", table), m.Position, dots("Block", table), m.Block, "MFT:", "")
	r.Printf("\t\tMLID\tPort Mask\n")
	for i, mask := range m.Table {
		r.Printf("\t\t0x%04x\t0x%04x\n", int(ib.LIDFirstMulticast)+int(m.Block)*len(m.Table)+i, mask)
	}
	r.Printf("\n")
	return nil
}

func (r *run) guids(b []byte) error {
	g, err := mad.ParseGUIDInfoRecord(b)
	if err != nil {
		return err
	}
	pairs := []any{dots("LID", table), g.LID, dots("Block", table), g.Block}
	for i, v := range g.Table {
		pairs = append(pairs, dots("GUID "+strconv.Itoa(i), table), ibdiag.Hex64(v))
	}
	r.lines("GUIDInfo Record dump:", pairs...)
	return nil
}

// capMulticastTop is the bit of CapabilityMask2 of switches that have a MulticastFDBTop.
const capMulticastTop = 1 << 3

func (r *run) switchInfo(b []byte) error {
	s, err := mad.ParseSwitchInfoRecord(b)
	if err != nil {
		return err
	}
	i := &s.Info
	const w, raw = 40, 4 // raw: offset of the attribute in the record
	pairs := []any{
		"RID", "", dots("LID", w), s.LID, "SwitchInfo dump:", "", dots("LinearFDBCap", w), hex(i.LinearFDBCap), dots("RandomFDBCap", w),
		hex(i.RandomFDBCap),
		dots("MulticastFDBCap", w), hex(i.MulticastFDBCap), dots("LinearFDBTop", w), hex(i.LinearFDBTop), dots("DefaultPort", w),
		i.DefaultPort,
		dots("DefaultMulticastPrimaryPort", w), i.DefaultMulticastPrimaryPort, dots("DefaultMulticastNotPrimaryPort", w),
		i.DefaultMulticastNotPrimaryPort,
		dots("LifeTimeValue/PortStateChange/OpSL2VL", w), hex(b[raw+11]), dots("LIDsPerPort", w), hex(i.LIDsPerPort),
		dots("PartitionEnforcementCap", w), hex(i.PartitionEnforcementCap), dots("flags", w), hex(b[raw+16]),
	}
	if r.caps.CapabilityMask2&capMulticastTop != 0 {
		pairs = append(pairs, dots("MulticastFDBTop", w), hex(i.MulticastFDBTop))
	}
	r.lines("SwitchInfoRecord dump:", pairs...)
	return nil
}

func (r *run) smInfo(b []byte) error {
	s, err := mad.ParseSMInfoRecord(b)
	if err != nil {
		return err
	}
	const w = 22
	r.lines("SMInfoRecord dump:", "RID", "", dots("LID", w), s.LID, "SMInfo dump:", "", dots("GUID", w), ibdiag.Hex64(s.Info.GUID),
		dots("SM_Key", w), ibdiag.Hex64(s.Info.SMKey),
		dots("ActCount", w), s.Info.ActCount, dots("Priority", w), s.Info.Priority, dots("SMState", w), uint8(s.Info.State))
	return nil
}

func (r *run) pathShow(b []byte) error {
	p, err := mad.ParsePathRecord(b)
	if err != nil {
		return err
	}
	r.lines("PathRecord dump:",
		dots("service_id", wide), ibdiag.Hex64(p.ServiceID), dots("dgid", wide), gid(p.DGID), dots("sgid", wide), gid(p.SGID),
		dots("dlid", wide), p.DLID, dots("slid", wide), p.SLID,
		dots("hop_flow_raw", wide), hex(binary.BigEndian.Uint32(b[44:])), dots("tclass", wide), hex(p.TrafficClass),
		dots("num_path_revers", wide), hex(b[49]),
		dots("pkey", wide), hex(uint16(p.PKey)), dots("qos_class", wide), hex(p.QoSClass), dots("sl", wide), hex(p.SL), dots("mtu", wide),
		hex(b[54]),
		dots("rate", wide), hex(b[55]), dots("pkt_life", wide), hex(b[56]), dots("preference", wide), hex(p.Preference),
		dots("resv2", wide), fmt.Sprintf("0x%012X", b[58:64]))
	return nil
}

func (r *run) member(b []byte) error {
	m, err := mad.ParseMCMemberRecord(b)
	if err != nil {
		return err
	}
	x := func(v uint32) string { return fmt.Sprintf("0x%x", v) }
	proxy := uint32(b[49])
	r.lines("MCMember Record dump:",
		dots("MGID", wide), gid(m.MGID), dots("PortGid", wide), gid(m.PortGID), dots("qkey", wide), x(m.QKey), dots("mlid", wide),
		x(uint32(m.MLID)), dots("mtu", wide), x(uint32(b[38])),
		dots("TClass", wide), x(uint32(m.TrafficClass)), dots("pkey", wide), x(uint32(m.PKey)), dots("rate", wide), x(uint32(b[42])),
		dots("pkt_life", wide), x(uint32(b[43])),
		dots("SL", wide), x(uint32(m.SL)), dots("FlowLabel", wide), x(m.FlowLabel), dots("HopLimit", wide), x(uint32(m.HopLimit)),
		dots("Scope", wide), x(uint32(m.Scope)),
		dots("JoinState", wide), x(uint32(m.JoinState)), dots("ProxyJoin", wide), x(proxy))
	return nil
}

func (r *run) group(b []byte) error {
	m, err := mad.ParseMCMemberRecord(b)
	if err != nil {
		return err
	}
	r.lines("MCMemberRecord group dump:", dots("MGID", wide), gid(m.MGID), dots("Mlid", wide), hex(uint16(m.MLID)), dots("Mtu", wide),
		hex(b[38]),
		dots("pkey", wide), hex(uint16(m.PKey)), dots("Rate", wide), hex(b[42]), dots("SL", wide), hex(m.SL))
	return nil
}

// members shows the members of multicast groups, or the GIDs of those in the group with the given LID.
func (r *run) members(only string) error {
	list, err := r.table(mad.AttrMCMemberRecord, 0, 0, nil)
	if err != nil {
		return err
	}
	nodes, err := r.allNodes()
	if err != nil {
		return err
	}
	for _, b := range list {
		m, err := mad.ParseMCMemberRecord(b)
		if err != nil {
			return err
		}
		name := "<unknown>"
		for i := range nodes {
			if nodes[i].Info.PortGUID == binary.BigEndian.Uint64(m.PortGID[8:]) {
				name = r.name(&nodes[i])
				break
			}
		}
		if only != "" {
			if n, err := strconv.ParseUint(only, 0, 16); err == nil && ib.LID(n) == m.MLID {
				r.Printf("\t\t%s%s (%s)\n", dots("PortGid", wide), gid(m.PortGID), name)
			}
			continue
		}
		r.lines("MCMemberRecord member dump:", dots("MGID", wide), gid(m.MGID), dots("Mlid", wide), hex(uint16(m.MLID)),
			dots("PortGid", wide), gid(m.PortGID),
			dots("ScopeState", wide), hex(b[48]), dots("ProxyJoin", wide), hex(b[49]), dots("NodeDescription", wide), name)
	}
	return nil
}

func (r *run) service(b []byte) error {
	s, err := mad.ParseServiceRecord(b)
	if err != nil {
		return err
	}
	key := ibdiag.NotDisplayed
	if r.ShowKeys {
		key = fmt.Sprintf("0x%x", s.Key)
	}
	name, _, _ := strings.Cut(string(s.Name[:]), "\x00")
	pairs := []any{
		dots("ServiceID", wide), ibdiag.Hex64(s.ID), dots("ServiceGID", wide), gid(s.GID), dots("ServiceP_Key", wide), hex(uint16(s.PKey)),
		dots("ServiceLease", wide), hex(s.Lease),
		dots("ServiceKey", wide), key, dots("ServiceName", wide), ibdiag.Printable(name),
	}
	at := 0
	for _, part := range []struct{ bits, count int }{{8, 16}, {16, 8}, {32, 4}, {64, 2}} {
		for i := range part.count {
			var v uint64
			for range part.bits / 8 {
				v = v<<8 | uint64(s.Data[at])
				at++
			}
			text := fmt.Sprintf("0x%X", v)
			if part.bits == 64 {
				text = ibdiag.Hex64(v)
			}
			pairs = append(pairs, dots(fmt.Sprintf("ServiceData%d.%d", part.bits, i+1), wide), text)
		}
	}
	r.lines("ServiceRecord dump:", pairs...)
	return nil
}

func (r *run) inform(b []byte) error {
	s, err := mad.ParseInformInfoRecord(b)
	if err != nil {
		return err
	}
	i := &s.Info
	qpn, generic, subscribe := ibdiag.NotDisplayed, uint8(0), uint8(0)
	if r.ShowKeys {
		qpn = fmt.Sprintf("0x%06X", uint32(i.QPN))
	}
	if i.IsGeneric {
		generic = 1
	}
	if i.Subscribe {
		subscribe = 1
	}
	pairs := []any{
		"RID", "", dots("SubscriberGID", wide), gid(s.SubscriberGID), dots("SubscriberEnum", wide), hex(s.Enum), "InformInfo dump:", "",
		dots("gid", wide), gid(i.GID),
		dots("lid_range_begin", wide), i.LIDBegin, dots("lid_range_end", wide), i.LIDEnd, dots("is_generic", wide), hex(generic),
		dots("subscribe", wide), hex(subscribe),
		dots("trap_type", wide), hex(i.Type),
	}
	who := "vendor_id"
	if i.IsGeneric {
		who = "node_type"
		pairs = append(pairs, dots("trap_num", wide), i.TrapNumber)
	} else {
		pairs = append(pairs, dots("dev_id", wide), hex(i.TrapNumber))
	}
	r.lines("InformInfoRecord dump:", append(pairs, dots("qpn", wide), qpn, dots("resp_time_val", wide), hex(i.RespTime), dots(who, wide),
		fmt.Sprintf("0x%06X", i.ProducerType))...)
	return nil
}
