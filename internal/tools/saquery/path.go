package saquery

import (
	"errors"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// given is the number of an option, and whether it was given.
type given struct {
	v  uint64
	is bool
}

// pathParams are the options that select paths and groups.
type pathParams struct {
	src, dst                                                                  string
	sgid, dgid, gid, mgid                                                     *ib.GID
	slid, dlid, mlid, reversible, number, pkey, qosClass, sl, mtu, rate, life given
	qkey, tclass, flow, hop, scope, joinState, proxyJoin, serviceID           given
}

func (p *pathParams) options(r *run) []ibdiag.Option {
	num := func(g *given, long string, letter byte, help string, high uint64) ibdiag.Option {
		o := ibdiag.Number(&g.v, long, letter, "<val>", help, 0, high)
		set := o.Set
		o.Set = func(v string) error { g.is = true; return set(v) }
		return o
	}
	gid := func(to **ib.GID, long, help string) ibdiag.Option {
		return ibdiag.Option{Long: long, Argument: "<gid>", Help: help, Set: func(v string) error {
			g, err := ibdiag.ParseGID(v)
			if err != nil {
				return errors.New("allowed: a GID in the form of an IPv6 address")
			}
			*to = &g
			return nil
		}}
	}
	pair := func(long, form, separator, help string, set func(a, b string) error) ibdiag.Option {
		return ibdiag.Option{Long: long, Argument: form, Help: help, Set: func(v string) error {
			a, b, ok := strings.Cut(v, separator)
			if !ok {
				return fmt.Errorf("allowed: %s", form)
			}
			p.number, r.attr = given{0x7f, true}, mad.AttrPathRecord
			return set(a, b)
		}}
	}
	const path, group = "path: ", "group: "
	return []ibdiag.Option{
		pair("src-to-dst", "<src:dst>", ":", "paths between two nodes, by LIDs or names", func(a, b string) error {
			p.src, p.dst = a,
				b
			return nil
		}),
		pair("sgid-to-dgid", "<sgid-dgid>", "-", "paths between two GIDs", func(a, b string) error {
			s, err := ibdiag.ParseGID(a)
			if err != nil {
				return err
			}
			d, err := ibdiag.ParseGID(b)
			p.sgid, p.dgid = &s, &d
			return err
		}),
		ibdiag.WithNames,
		{Long: "smkey", Argument: "<val>", Help: "SM_Key of the request", Set: func(v string) (err error) {
			r.saKey,
				err = ibdiag.ParseNumber("--smkey", v, 0, 1<<64-1)
			return err
		}},
		num(&p.slid, "slid", 0, path+"source LID", 0xffff), num(&p.dlid, "dlid", 0, path+"destination LID", 0xffff),
		num(&p.mlid, "mlid", 0, group+"multicast LID", 0xffff),
		gid(&p.sgid, "sgid", path+"source GID"), gid(&p.dgid, "dgid", path+"destination GID"), gid(&p.gid, "gid", group+"port GID"),
		gid(&p.mgid, "mgid", group+"multicast GID"),
		num(&p.reversible, "reversible", 'r', path+"reversible", 1), num(&p.number, "numb_path", 'n', path+"how many", 0x7f),
		num(&p.pkey, "pkey", 0, "P_Key", 0xffff),
		num(&p.qosClass, "qos_class", 'Q', path+"QoS class", 0xfff), num(&p.sl, "sl", 0, "service level", 15),
		num(&p.mtu, "mtu", 'M', "MTU, with its selector", 0xff),
		num(&p.rate, "rate", 'R', "rate, with its selector", 0xff), num(&p.life, "pkt_lifetime", 0, "packet lifetime, with its selector",
			0xff),
		num(&p.qkey, "qkey", 'q', group+"Q_Key", 1<<32-1), num(&p.tclass, "tclass", 'T', "traffic class", 0xff),
		num(&p.flow, "flow_label", 'F', "flow label", 0xfffff),
		num(&p.hop, "hop_limit", 'H', "hop limit", 0xff), num(&p.scope, "scope", 0, group+"scope", 15),
		num(&p.joinState, "join_state", 'J', group+"join state", 15),
		num(&p.proxyJoin, "proxy_join", 'X', group+"proxy join", 1), num(&p.serviceID, "service_id", 0, path+"service ID", 1<<64-1),
	}
}

// resolve finds the LIDs of nodes given by name.
func (p *pathParams) resolve(r *run) error {
	for text, to := range map[string]*given{p.src: &p.slid, p.dst: &p.dlid} {
		if text == "" {
			continue
		}
		lid, err := r.lid(text)
		if err != nil {
			return err
		}
		*to = given{uint64(lid), true}
	}
	return nil
}

// masker collects the component mask.
type masker uint64

// take adds the bit of an option if it was given, and returns its value.
func (m *masker) take(g given, bit uint64) uint64 {
	if g.is {
		*m |= masker(bit)
	}
	return g.v
}

// gid does the same for a GID.
func (m *masker) gid(g *ib.GID, bit uint64) (v ib.GID) {
	if g != nil {
		*m |= masker(bit)
		v = *g
	}
	return v
}

// selected splits a value with a selector in its upper two bits.
func (m *masker) selected(g given, bits uint64) (selector, value uint8) {
	v := uint8(m.take(g, bits))
	return v >> 6, v & 63
}

func (p *pathParams) pathRecord() ([]byte, uint64, error) {
	var m masker
	r := mad.PathRecord{
		ServiceID: m.take(p.serviceID, mad.PathServiceID8|mad.PathServiceID56), SGID: m.gid(p.sgid, mad.PathSGID),
		DGID: m.gid(p.dgid, mad.PathDGID),
		SLID: ib.LID(m.take(p.slid, mad.PathSLID)), DLID: ib.LID(m.take(p.dlid, mad.PathDLID)),
		HopLimit:  uint8(m.take(p.hop, mad.PathHopLimit)),
		FlowLabel: uint32(m.take(p.flow, mad.PathFlowLabel)), TrafficClass: uint8(m.take(p.tclass, mad.PathTrafficClass)),
		Reversible: m.take(p.reversible, mad.PathReversible) != 0, NumPath: uint8(m.take(p.number, mad.PathNumPath)),
		PKey: ib.PKey(m.take(p.pkey, mad.PathPKey)),
		SL:   uint8(m.take(p.sl, mad.PathSL)), QoSClass: uint16(m.take(p.qosClass, mad.PathQoSClass)),
	}
	var mtu uint8
	r.MTUSelector, mtu = m.selected(p.mtu, mad.PathMTUSelector|mad.PathMTU)
	r.MTU = ib.MTU(mtu)
	r.RateSelector, r.Rate = m.selected(p.rate, mad.PathRateSelector|mad.PathRate)
	r.LifeSelector, r.Life = m.selected(p.life, mad.PathLifeSelector|mad.PathLife)
	return r.Append(nil), uint64(m), nil
}

func (p *pathParams) memberRecord() ([]byte, uint64, error) {
	var m masker
	r := mad.MCMemberRecord{
		MGID: m.gid(p.mgid, mad.MemberMGID), PortGID: m.gid(p.gid, mad.MemberPortGID), MLID: ib.LID(m.take(p.mlid, mad.MemberMLID)),
		QKey: uint32(m.take(p.qkey, mad.MemberQKey)), TrafficClass: uint8(m.take(p.tclass, mad.MemberTrafficClass)),
		PKey: ib.PKey(m.take(p.pkey, mad.MemberPKey)),
		SL:   uint8(m.take(p.sl, mad.MemberSL)), FlowLabel: uint32(m.take(p.flow, mad.MemberFlowLabel)),
		HopLimit: uint8(m.take(p.hop, mad.MemberHopLimit)),
		Scope:    uint8(m.take(p.scope, mad.MemberScope)), JoinState: uint8(m.take(p.joinState, mad.MemberJoinState)),
		ProxyJoin: m.take(p.proxyJoin, mad.MemberProxyJoin) != 0,
	}
	var mtu uint8
	r.MTUSelector, mtu = m.selected(p.mtu, mad.MemberMTUSelector|mad.MemberMTU)
	r.MTU = ib.MTU(mtu)
	r.RateSelector, r.Rate = m.selected(p.rate, mad.MemberRateSelector|mad.MemberRate)
	r.LifeSelector, r.Life = m.selected(p.life, mad.MemberLifeSelector|mad.MemberLife)
	return r.Append(nil), uint64(m), nil
}

// command is something to do instead of a query for one kind of record.
type command int

const (
	queryCommand command = iota
	nodeCommand
	capsCommand
	managersCommand
	groupsCommand
	membersCommand
)

// commands returns the options for commands and kinds of records.
func (r *run) commands() []ibdiag.Option {
	cmd := func(long string, c command, f form, help string) ibdiag.Option {
		letter := long[0]
		if long == "list" {
			letter = 'D'
		}
		return ibdiag.Option{Long: long, Letter: letter, Help: help, Set: func(string) error { r.cmd, r.form = c, f; return nil }}
	}
	kind := func(letter byte, attribute uint16, help string) ibdiag.Option {
		return ibdiag.Option{Long: string(letter), Letter: letter, Help: help, Set: func(string) error { r.attr = attribute; return nil }}
	}
	return []ibdiag.Option{
		kind('p', mad.AttrPathRecord, "paths"), cmd("N", nodeCommand, whole, "nodes"), cmd("L", nodeCommand, lids,
			"LIDs of the node with this name"),
		cmd("l", nodeCommand, firstLID, "one LID of the node with this name"), cmd("G", nodeCommand, guids,
			"GUIDs of the node with this name"),
		cmd("O", nodeCommand, nameOfLID, "name of the node with this LID"), cmd("U", nodeCommand, nameOfGUID,
			"name of the node with this GUID"),
		cmd("s", managersCommand, whole, "ports with subnet managers"), cmd("g", groupsCommand, whole, "multicast groups"),
		cmd("m", membersCommand, whole, "members of multicast groups, or of the one with this LID"), kind('x', mad.AttrLinkRecord, "links"),
		cmd("c", capsCommand, whole, "what subnet administration can do"), kind('S', mad.AttrServiceRecord, "services"),
		kind('I', mad.AttrInformInfoRecord, "subscriptions"), cmd("list", nodeCommand, descriptions, "LIDs and names of adapters"),
	}
}

// form says what to show of nodes.
type form int

const (
	whole form = iota
	lids
	firstLID
	guids
	descriptions
	nameOfLID
	nameOfGUID
)

func (r *run) command(args []string) error {
	only := ""
	if len(args) > 0 {
		only = args[0]
	}
	switch r.cmd {
	case capsCommand:
		return r.classPortInfo()
	case managersCommand:
		return r.managers()
	case groupsCommand:
		return r.each(mad.AttrMCMemberRecord, r.group)
	case membersCommand:
		return r.members(only)
	}
	return r.listNodes(only)
}

func (r *run) each(attribute uint16, show func([]byte) error) error {
	list, err := r.table(attribute, 0, 0, nil)
	for _, b := range list {
		if err = show(b); err != nil {
			return err
		}
	}
	return err
}

// listNodes shows nodes, or what the option requests of those selected by the argument.
func (r *run) listNodes(only string) error {
	var number uint64
	var err error
	switch r.form {
	case lids, firstLID, guids:
		if only == "" {
			return tool.Usagef("name not specified; allowed: the name of a node")
		}
	case nameOfLID:
		number, err = ibdiag.ParseNumber("the LID", only, 1, 0xffff)
	case nameOfGUID:
		number, err = ibdiag.ParseNumber("the GUID", only, 1, 1<<64-1)
	}
	if err != nil {
		return err
	}
	list, err := r.table(mad.AttrNodeRecord, 0, 0, nil)
	if err != nil {
		return err
	}
	if r.form == descriptions {
		r.Printf("   LID \"name\"\n================\n")
	}
	for _, b := range list {
		n, err := mad.ParseNodeRecord(b)
		if err != nil {
			return err
		}
		if r.chosen(&n, only, number) && r.showNode(&n, b) {
			return nil
		}
	}
	return nil
}

func (r *run) chosen(n *mad.NodeRecord, only string, number uint64) bool {
	switch r.form {
	case descriptions:
		return n.Info.NodeType == mad.NodeCA
	case nameOfLID:
		return number == uint64(n.LID)
	case nameOfGUID:
		return number == n.Info.PortGUID
	}
	return only == "" || only == n.Description.String() || only == r.name(n)
}

func (r *run) name(n *mad.NodeRecord) string {
	return r.Node.Of(n.Info.NodeGUID, n.Description.String())
}

// showNode shows a node; true: no more are wanted.
func (r *run) showNode(n *mad.NodeRecord, record []byte) bool {
	switch r.form {
	case lids, firstLID:
		r.Printf("%d\n", n.LID)
		return r.form == firstLID
	case guids:
		r.Printf("%s\n", ibdiag.Hex64(n.Info.PortGUID))
	case nameOfLID, nameOfGUID:
		r.Printf("%s\n", r.name(n))
	case descriptions:
		r.Printf("%6d  \"%s\"\n", n.LID, r.name(n))
	default:
		return r.node(record) != nil
	}
	return false
}

// componentCapabilities is the bit of PortInfoRecord's CapabilityMask, and matchCapabilities the modifier
// by which a port matches if it has one of the bits (IBA 15.2.5.3).
const (
	componentCapabilities = 1 << 7
	matchCapabilities     = 1 << 31
)

func (r *run) managers() error {
	for i, bit := range []uint32{mad.CapIsSM, mad.CapIsSMDisabled} {
		p := mad.PortInfoRecord{Info: mad.PortInfo{CapabilityMask: bit}}
		list, err := r.table(mad.AttrPortInfoRecord, matchCapabilities, componentCapabilities, p.Append(nil))
		if err != nil {
			return err
		}
		r.Printf("%s\n", []string{"IsSM ports", "\nIsSMdisabled ports"}[i])
		for _, b := range list {
			p, err := mad.ParsePortInfoRecord(b)
			if err != nil {
				return err
			}
			r.Printf("PortInfoRecord dump:\n\t\tEndPortLid..............%d\n\t\tPortNum.................%d\n\t\tbase_lid................%d\n"+
				"\t\tmaster_sm_base_lid......%d\n\t\tcapability_mask.........0x%X\n", p.EndPortLID, p.PortNum, p.Info.LID,
				p.Info.MasterSMLID, p.Info.CapabilityMask)
		}
	}
	return nil
}
