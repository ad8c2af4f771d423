package osmtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// all is flow a.
func (t *test) all() error {
	if err := t.validate(); err != nil {
		return err
	}
	return t.services()
}

// validate compares the subnet with the inventory, in both directions, and sends queries that must and
// must not be answered.
func (t *test) validate() error {
	f, err := inputfile.Open(t.o.inventory, inputfile.Text)
	if err != nil {
		return tool.Usagef("inventory file (-i): %v", err)
	}
	defer f.Close()
	want, err := readInventory(f, t.o.inventory)
	if err != nil {
		return err
	}
	for i := range kinds {
		k := &kinds[i]
		if k.attr == mad.AttrPathRecord && t.o.noPaths {
			continue
		}
		got, err := t.records(k)
		if err != nil {
			return err
		}
		t.compare(k, want[k.define], got)
	}
	return t.rules()
}

// compare compares records of a kind: nothing may be missing, new or different.
func (t *test) compare(k *kind, want []record, got [][]byte) {
	there := map[string]record{}
	for _, b := range got {
		r := k.read(b)
		there[k.id(r)] = r
	}
	for _, w := range want {
		id := k.id(w)
		g, ok := there[id]
		if !ok {
			t.wrong("%s %s is in the inventory and not in the subnet", k.define, id)
			continue
		}
		delete(there, id)
		for i := range k.fields {
			n := k.fields[i].name
			if v, ok := w[n]; ok && !strings.EqualFold(v, g[n]) {
				t.wrong("%s %s: %s is %s, in the inventory %s", k.define, id, n, g[n], v)
			}
		}
	}
	for id := range there {
		t.wrong("%s %s is in the subnet and not in the inventory", k.define, id)
	}
	t.say(logInfo, "%s: %d in the inventory, %d in the subnet", k.title, len(want), len(got))
}

// rule is a query with the status that its answer must have.
type rule struct {
	name   string
	method uint8
	attr   uint16
	mask   uint64
	data   []byte
	key    uint64
	status uint16
	or     uint16 // another acceptable status, unless 0
	none   bool   // the table must be empty
	some   bool   // the table must not be empty
	silent bool   // there must be no answer
}

// check sends the query, and reports what is wrong with the answer.
func (t *test) check(r rule) (*umad.Answer, error) {
	tries := 3
	if r.silent {
		tries = 1
	}
	a, err := t.askOften(r.method, r.attr, r.mask, r.data, r.key, tries)
	if errors.Is(err, umad.ErrTimeout) && r.silent {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	switch {
	case r.silent && a.Status == mad.StatusOK:
		t.wrong("%s: answered, and without an error", r.name)
	case !r.silent && a.Status != r.status && (r.or == 0 || a.Status != r.or) && !(r.none && a.Status == mad.SANoRecords):
		t.wrong("%s: %s, want %s", r.name, mad.StatusText(a.Status), mad.StatusText(r.status))
	case r.none && a.Status == mad.StatusOK && len(a.Records) > 0:
		t.wrong("%s: there are records", r.name)
	case r.some && len(a.Records) == 0:
		t.wrong("%s: there are no records", r.name)
	}
	t.say(logVerbose, "%s: %s", r.name, mad.StatusText(a.Status))
	return a, nil
}

func (t *test) checkAll(list []rule) error {
	for _, r := range list {
		if _, err := t.check(r); err != nil {
			return err
		}
	}
	return nil
}

func lid16(l ib.LID) []byte { return binary.BigEndian.AppendUint16(nil, uint16(l)) }

// rules sends queries with keys that exist, and with keys that do not.
func (t *test) rules() error {
	d := t.port.Device()
	own, get, table := t.ownGID(), uint8(mad.MethodGet), uint8(mad.MethodGetTable)
	path := func(to ib.GID) []byte {
		p := mad.PathRecord{SGID: own, DGID: to, NumPath: 1}
		return p.Append(nil)
	}
	const ends = mad.PathSGID | mad.PathDGID | mad.PathNumPath
	foreign, unknown, link := own, own, own
	foreign[0], foreign[1], foreign[7] = 0xfe, 0xc0, 0x77
	unknown[15] ^= 0x5a
	unknown[9] ^= 0x5a
	copy(link[:8], []byte{0xfe, 0x80, 0, 0, 0, 0, 0, 0})
	list := []rule{
		{name: "NodeRecord by LID", method: get, attr: mad.AttrNodeRecord, mask: 1, data: lid16(d.Port.LID)},
		{name: "NodeRecords by a LID that nobody has", method: table, attr: mad.AttrNodeRecord, mask: 1, data: lid16(0xffff), none: true},
		{name: "NodeRecord by a LID that nobody has", method: get, attr: mad.AttrNodeRecord, mask: 1, data: lid16(0xffff),
			status: mad.SANoRecords},
		{name: "PortInfoRecord by LID and port", method: get, attr: mad.AttrPortInfoRecord, mask: 3,
			data: append(lid16(d.Port.LID), d.Port.LocalPortNum)},
		{name: "PortInfoRecords by a LID that nobody has", method: table, attr: mad.AttrPortInfoRecord, mask: 1, data: lid16(0xffff),
			none: true},
		{name: "GUIDInfoRecords", method: table, attr: mad.AttrGUIDInfoRecord, some: true},
		{name: "GUIDInfoRecords by a LID that nobody has", method: table, attr: mad.AttrGUIDInfoRecord, mask: 1, data: lid16(0xffff),
			none: true},
		{name: "SwitchInfoRecords", method: table, attr: mad.AttrSwitchInfoRecord},
		{name: "LinearForwardingTableRecords", method: table, attr: mad.AttrLFTRecord},
		{name: "MulticastForwardingTableRecords", method: table, attr: mad.AttrMFTRecord},
		{name: "LinkRecords", method: table, attr: mad.AttrLinkRecord, some: true},
		{name: "SMInfoRecords", method: table, attr: mad.AttrSMInfoRecord, some: true},
		{name: "SMInfoRecords by a LID that nobody has", method: table, attr: mad.AttrSMInfoRecord, mask: 1, data: lid16(0xffff),
			none: true},
		{name: "P_KeyTableRecords with the SM_Key", method: table, attr: mad.AttrPKeyTableRecord, key: 1, some: true},
		{name: "a wrong SM_Key", method: table, attr: mad.AttrNodeRecord, key: 0x1234, silent: true},
		{name: "path to itself", method: get, attr: mad.AttrPathRecord, mask: ends, data: path(own)},
		{name: "path to itself by the link-local prefix", method: get, attr: mad.AttrPathRecord, mask: ends, data: path(link)},
		{name: "path to a GID that nobody has", method: get, attr: mad.AttrPathRecord, mask: ends, data: path(unknown),
			status: mad.SAInvalidGID, or: mad.SANoRecords},
		{name: "path to another subnet", method: get, attr: mad.AttrPathRecord, mask: ends, data: path(foreign), status: mad.SAInvalidGID,
			or: mad.SANoRecords},
		{name: "an attribute that is not there", method: get, attr: 0x7777, silent: true},
	}
	if err := t.checkAll(list); err != nil {
		return err
	}
	if err := t.multiPaths(); err != nil {
		return err
	}
	return t.subscriptions()
}

// maxGIDs is how many GIDs fit after a MultiPathRecord in one MAD.
const maxGIDs = (mad.SADataLen - mad.MultiPathRecordLen) / 16

// multiPaths requests the paths to several ports at once, and from one that does not exist.
func (t *test) multiPaths() error {
	nodes, err := t.table(mad.AttrNodeRecord, 0, nil, kinds[0].length)
	if err != nil {
		return err
	}
	own := t.ownGID()
	r := mad.MultiPathRecord{Path: mad.PathRecord{Reversible: true}, SGIDs: []ib.GID{own}}
	for _, n := range nodes {
		to := own
		copy(to[8:], n[24:32])
		if !slices.Contains(r.DGIDs, to) && len(r.DGIDs) < maxGIDs-1 {
			r.DGIDs = append(r.DGIDs, to)
		}
	}
	const mask = mad.MultiSGIDCount | mad.MultiDGIDCount | mad.MultiReversible
	ask := rule{name: "paths to several ports (MultiPathRecord)", method: mad.MethodGetMulti, attr: mad.AttrMultiPathRecord, mask: mask,
		data: r.Append(nil), some: true}
	a, err := t.check(ask)
	if err != nil {
		return err
	}
	list, err := cut(a, mad.PathRecordLen)
	if err != nil {
		return err
	}
	found := map[ib.GID]int{}
	for _, b := range list {
		p, err := mad.ParsePathRecord(b)
		if err != nil {
			return err
		}
		if p.SGID != own {
			t.wrong("%s: one is from %v", ask.name, p.SGID)
		}
		found[p.DGID]++
	}
	for _, to := range r.DGIDs {
		if found[to] == 0 {
			t.wrong("%s: there is none to %v", ask.name, to)
		}
	}
	t.say(logInfo, "%d paths to %d ports", len(list), len(r.DGIDs))
	r.SGIDs[0][15] ^= 0x5a
	r.SGIDs[0][9] ^= 0x5a
	ask = rule{name: "paths from a port that is not there (MultiPathRecord)", method: mad.MethodGetMulti, attr: mad.AttrMultiPathRecord,
		mask: mask, data: r.Append(nil),
		status: mad.SAInvalidGID, or: mad.SANoRecords}
	_, err = t.check(ask)
	return err
}

// subscriptions subscribes to all traps, and unsubscribes again.
func (t *test) subscriptions() error {
	info := mad.InformInfo{LIDBegin: 0xffff, IsGeneric: true, Subscribe: true, Type: 0xffff, TrapNumber: 0xffff, RespTime: 18,
		ProducerType: 0xffffff}
	count := func() (int, error) {
		list, err := t.table(mad.AttrInformInfoRecord, 0, nil, 1)
		return len(list), err
	}
	before, err := count()
	if err != nil {
		return err
	}
	set := func(name string, want int) error {
		if _, err := t.check(rule{name: name, method: mad.MethodSet, attr: mad.AttrInformInfo, data: info.Append(nil)}); err != nil {
			return err
		}
		n, err := count()
		if err == nil && n != want {
			t.wrong("%s: there are %d subscriptions, want %d", name, n, want)
		}
		return err
	}
	if err := set("subscribing", before+1); err != nil {
		return err
	}
	if err := set("subscribing once more", before+1); err != nil {
		return err
	}
	info.Subscribe, info.QPN = false, umad.GSIQP
	return set("ending the subscription", before)
}

// qos gets the arbitration and SL-to-VL tables.
func (t *test) qos() error {
	for _, k := range []struct {
		name string
		attr uint16
	}{{"VLArbitrationTableRecords", mad.AttrVLArbRecord}, {"SLtoVLMappingTableRecords", mad.AttrSLtoVLRecord}} {
		list, err := t.table(k.attr, 0, nil, 8)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			t.wrong("there are no %s", k.name)
		}
		t.say(logInfo, "%d %s", len(list), k.name)
		for _, b := range list {
			t.say(logVerbose, "% x", b)
		}
	}
	return nil
}
