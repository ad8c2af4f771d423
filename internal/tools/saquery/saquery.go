// Package saquery is the tool that queries subnet administration for records.
package saquery

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// The exit statuses of infiniband-diags, which are system error numbers.
const (
	statusIO      = 5
	statusTimeout = 110
)

// query is a kind of record.
type query struct {
	name, alias string
	attribute   uint16
	usage       string
	key         []component // what the argument LID/X/Y gives; the first is the LID
	show        func(*run, []byte) error
}

// component is a part of a record's key: its bytes, and the bit of the component mask.
type component struct {
	at, size int
	bit      uint
	shift    uint // distance from the right end of the bytes
}

func lidKey(more ...component) []component { return append([]component{{0, 2, 0, 0}}, more...) }

var queries = []query{
	{"ClassPortInfo", "CPI", mad.AttrClassPortInfo, "", nil, nil},
	{"NodeRecord", "NR", mad.AttrNodeRecord, "[lid]", lidKey(), (*run).node},
	{"PortInfoRecord", "PIR", mad.AttrPortInfoRecord, "[[lid]/[port]/[options]]", lidKey(component{2, 1, 1, 0}, component{3, 1, 2, 0}),
		(*run).portInfo},
	{"SL2VLTableRecord", "SL2VL", mad.AttrSLtoVLRecord, "[[lid]/[in_port]/[out_port]]", lidKey(component{2, 1, 1, 0},
		component{3, 1, 2, 0}), (*run).sl2vl},
	{"PKeyTableRecord", "PKTR", mad.AttrPKeyTableRecord, "[[lid]/[port]/[block]]", lidKey(component{4, 1, 2, 0}, component{2, 2, 1, 0}),
		(*run).pkeys},
	{"VLArbitrationTableRecord", "VLAR", mad.AttrVLArbRecord, "[[lid]/[port]/[block]]", lidKey(component{2, 1, 1, 0},
		component{3, 1, 2, 0}), (*run).vlarb},
	{"InformInfoRecord", "IIR", mad.AttrInformInfoRecord, "[subscriber_gid]", nil, (*run).inform},
	{"LinkRecord", "LR", mad.AttrLinkRecord, "[[from_lid]/[from_port]] [[to_lid]/[to_port]]", lidKey(component{2, 1, 1, 0}), (*run).link},
	{"ServiceRecord", "SR", mad.AttrServiceRecord, "", nil, (*run).service},
	{"PathRecord", "PR", mad.AttrPathRecord, "", nil, (*run).pathShow},
	{"MCMemberRecord", "MCMR", mad.AttrMCMemberRecord, "", nil, (*run).member},
	{"LFTRecord", "LFTR", mad.AttrLFTRecord, "[[lid]/[block]]", lidKey(component{2, 2, 1, 0}), (*run).lft},
	{"MFTRecord", "MFTR", mad.AttrMFTRecord, "[[lid]/[position]/[block]]", lidKey(component{2, 2, 1, 12}, component{2, 2, 3, 0}),
		(*run).mft},
	{"GUIDInfoRecord", "GIR", mad.AttrGUIDInfoRecord, "[[lid]/[block]]", lidKey(component{2, 1, 1, 0}), (*run).guids},
	{"SwitchInfoRecord", "SWIR", mad.AttrSwitchInfoRecord, "[lid]", lidKey(), (*run).switchInfo},
	{"SMInfoRecord", "SMIR", mad.AttrSMInfoRecord, "[lid]", lidKey(), (*run).smInfo},
}

func queryOf(attribute uint16) *query {
	for i := range queries {
		if queries[i].attribute == attribute {
			return &queries[i]
		}
	}
	return nil
}

func queryNamed(name string) *query {
	for i := range queries {
		if q := &queries[i]; strings.EqualFold(q.name, name) || strings.EqualFold(q.alias, name) {
			return q
		}
	}
	return nil
}

// run is a run of saquery.
type run struct {
	*ibdiag.Session
	sm    ibdiag.Route
	caps  mad.ClassPortInfo
	cmd   command
	attr  uint16 // selected by an option
	path  pathParams
	cut   bool
	form  form
	saKey uint64 // of --smkey
}

// Main runs saquery.
func Main(ctx context.Context, env tool.Env) int {
	r := &run{}
	var list strings.Builder
	for _, q := range queries {
		fmt.Fprintf(&list, "  %s (%s) %s\n", q.name, q.alias, q.usage)
	}
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "[query-name] [<name> | <lid> | <guid>]\n\nQueries, in any letter case; without one, nodes:\n" + list.String(),
		About:     "Asks subnet administration for records.",
		Options:   append(r.commands(), r.path.options(r)...),
		Without:   "DGLsy", Most: 3,
		Work: func(s *ibdiag.Session, args []string) error {
			r.Session = s
			return r.run(args)
		},
	})
}

func (r *run) run(args []string) (err error) {
	if r.sm, err = r.SM(); err != nil {
		return err
	}
	if err := r.path.resolve(r); err != nil {
		return err
	}
	if r.cmd != queryCommand {
		return r.command(args)
	}
	q := queryOf(mad.AttrNodeRecord)
	switch {
	case r.attr != 0:
		q = queryOf(r.attr)
	case len(args) > 0:
		if named := queryNamed(args[0]); named != nil {
			q, args = named, args[1:]
		}
	}
	return r.records(q, args)
}

// records requests the records of a kind, with the key given by the arguments, and shows them.
func (r *run) records(q *query, args []string) error {
	switch q.attribute {
	case mad.AttrClassPortInfo:
		return r.classPortInfo()
	case mad.AttrSwitchInfoRecord:
		if err := r.capabilities(); err != nil {
			return err
		}
	}
	record, mask, err := r.request(q, args)
	if err != nil {
		return err
	}
	list, err := r.table(q.attribute, 0, mask, record)
	if err != nil {
		return err
	}
	for _, one := range list {
		if err := q.show(r, one); err != nil {
			return err
		}
	}
	return nil
}

// request returns the record with the requested key, and the component mask.
func (r *run) request(q *query, args []string) (record []byte, mask uint64, err error) {
	record = make([]byte, mad.SADataLen)
	switch q.attribute {
	case mad.AttrPathRecord:
		return r.path.pathRecord()
	case mad.AttrMCMemberRecord:
		return r.path.memberRecord()
	case mad.AttrInformInfoRecord:
		if len(args) > 0 {
			g, err := ibdiag.ParseGID(args[0])
			copy(record, g[:])
			return record, 1, err
		}
		return record, 0, nil
	}
	if len(args) > 0 && q.key != nil {
		mask, err = r.key(record, q.key, args[0])
	}
	if len(args) > 1 && err == nil && q.attribute == mad.AttrLinkRecord {
		var more uint64
		more, err = r.key(record, []component{{4, 2, 3, 0}, {3, 1, 2, 0}}, args[1])
		mask |= more
	}
	return record, mask, err
}

// key stores the parts of an argument such as 3/1/0 in a record. The first is a LID or the name of a node.
func (r *run) key(record []byte, parts []component, text string) (mask uint64, err error) {
	for i, word := range strings.Split(text, "/") {
		if i >= len(parts) {
			return 0, tool.Usagef("the key is %q; allowed: %d parts with slashes", text, len(parts))
		}
		if word == "" {
			continue
		}
		c := parts[i]
		var v uint64
		if i == 0 {
			lid, err := r.lid(word)
			if err != nil {
				return 0, err
			}
			v = uint64(lid)
		} else if v, err = ibdiag.ParseNumber("a part of the key", word, 0, 1<<(8*c.size-int(c.shift))-1); err != nil {
			return 0, err
		}
		v <<= c.shift
		for b := range c.size {
			record[c.at+c.size-1-b] |= byte(v >> (8 * b))
		}
		mask |= 1 << c.bit
	}
	return mask, nil
}

// lid parses a LID, or looks for the node with that description.
func (r *run) lid(text string) (ib.LID, error) {
	if n, err := strconv.ParseUint(text, 0, 16); err == nil && n > 0 {
		return ib.LID(n), nil
	}
	if c := text[0]; c >= '0' && c <= '9' || c == '-' {
		return 0, tool.Usagef("Invalid lid specified: %q; allowed: 1 to 65535, or the name of a node", text)
	}
	nodes, err := r.allNodes()
	if err != nil {
		return 0, err
	}
	for _, n := range nodes {
		if n.Description.String() == text {
			return n.LID, nil
		}
	}
	return 0, ibdiag.Failf("Failed to find lid for %q", text)
}

// ask queries subnet administration.
func (r *run) ask(m *mad.SA) (*umad.Answer, error) {
	m.SMKey = r.SAKey
	if r.saKey != 0 {
		m.SMKey = r.saKey
	}
	timing := r.Timing
	timing.Tries = 1
	a, err := r.Port.Query(r.Context, r.sm.Services(), m, timing)
	switch {
	case errors.Is(err, umad.ErrTimeout):
		return nil, r.failed(statusTimeout, "Query SA failed: Connection timed out")
	case err != nil:
		return nil, err
	case a.Status != mad.StatusOK:
		return nil, r.failed(statusIO, "ERROR: Query result returned 0x%04x, %s", a.Status, statusText(a.Status))
	}
	if a.Cut && !r.cut {
		r.cut = true
		r.Warnf("sa_query", "the answer was sent without segments: everything after its first %d bytes is lost", mad.SADataLen)
	}
	return a, nil
}

func (r *run) failed(status int, format string, args ...any) error {
	r.Out.Flush()
	fmt.Fprintf(r.Env.Stderr, format+"\n", args...)
	return ibdiag.Ended(status)
}

// statusText returns the meaning of a status, in the words of infiniband-diags.
func statusText(status uint16) (text string) {
	if low := status & 0xff; low != 0 {
		fields := []string{"MAD No invalid fields", "MAD Bad version", "MAD Method specified is not supported",
			"MAD Method/Attribute combination is not supported",
			"MAD Reserved", "MAD Reserved", "MAD Reserved", "MAD Invalid value in Attribute field(s) or Attribute Modifier",
			"MAD UNKNOWN ERROR"}
		busy, redirect := "", ""
		if low&1 != 0 {
			busy = "BUSY"
		}
		if low&2 != 0 {
			redirect = "Redirection Required"
		}
		text = fmt.Sprintf(" (%s; %s; %s)", busy, redirect, fields[min(int(low>>2), len(fields)-1)])
	}
	if high := status >> 8; high != 0 {
		words := []string{"", "SA_ERR_NO_RESOURCES", "SA_ERR_REQ_INVALID", "SA_ERR_NO_RECORDS", "SA_ERR_TOO_MANY_RECORDS",
			"SA_ERR_REQ_INVALID_GID",
			"SA_ERR_REQ_INSUFFICIENT_COMPONENTS", "SA_ERR_REQ_DENIED", "SA_ERR_STATUS_PRIO_SUGGESTED", "SA_ERR_UNKNOWN"}
		text += fmt.Sprintf(" SA(%s)", words[min(int(high), len(words)-1)])
	}
	return text
}

// table requests all records with the components of the mask.
func (r *run) table(attribute uint16, modifier uint32, mask uint64, record []byte) (list [][]byte, err error) {
	m := mad.NewSA(mad.MethodGetTable, attribute, modifier, 0)
	m.ComponentMask = mask
	copy(m.Data[:], record)
	a, err := r.ask(&m)
	if err != nil {
		return nil, err
	}
	size := int(a.AttrOffset) * 8
	if size == 0 {
		return nil, nil
	}
	for b := a.Records; len(b) >= size; b = b[size:] {
		list = append(list, b[:size])
	}
	return list, nil
}

func (r *run) capabilities() error {
	m := mad.NewSA(mad.MethodGet, mad.AttrClassPortInfo, 0, 0)
	a, err := r.ask(&m)
	if err != nil {
		return err
	}
	r.caps, err = mad.ParseClassPortInfo(a.Data[:])
	return err
}

func (r *run) allNodes() (nodes []mad.NodeRecord, err error) {
	list, err := r.table(mad.AttrNodeRecord, 0, 0, nil)
	for _, b := range list {
		n, e := mad.ParseNodeRecord(b)
		if e != nil {
			return nil, e
		}
		nodes = append(nodes, n)
	}
	return nodes, err
}
