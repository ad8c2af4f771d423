package subnet

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// administration answers questions about the subnet, and keeps groups, services and subscriptions (IBA 15).
type administration struct {
	sm *SM

	came  mad.SA  // what is being looked at
	asked request // what is being answered

	out      map[peer]*transfer
	outOrder []peer // for a fixed order
	held     int    // bytes in out
	clients  map[client]*habits
	in       map[peer]*incoming

	groups      map[ib.GID]*group
	legacies    map[ib.LID]legacy // who is served at the multicast LIDs of the manager before this one
	guids       guidTables
	services    []*service
	legaciesEnd clock.Time
	leaseEnds   clock.Time // no service's lease is over before
	subs        []*subscription
	reports     []*report
	tid         uint32
	revision    uint64 // changes with what ports register
}

func (a *administration) init(s *SM) {
	a.sm, a.leaseEnds, a.legaciesEnd = s, clock.Never, clock.Never
	a.out, a.in, a.groups, a.clients = map[peer]*transfer{}, map[peer]*incoming{}, map[ib.GID]*group{}, map[client]*habits{}
	a.guids = guidTables{byPort: map[uint64][]uint64{}, owner: map[uint64]uint64{}}
	a.makeGroups()
}

// request is a question in hand.
type request struct {
	sa      mad.SA
	data    []byte // the record in it, longer than a MAD where it came in several
	from    *Packet
	port    int32 // end port that asks
	trusted bool
}

func (r *request) has(components uint64) bool { return r.sa.ComponentMask&components == components }

// receive takes a MAD of the class.
func (a *administration) receive(p *Packet, h *mad.Header) {
	m := &a.came
	var err error
	if *m, err = mad.ParseSA(p.MAD[:]); err != nil {
		return
	}
	key := peer{p.LID, p.QPN, m.TransactionID}
	if m.Active() && m.RMPP.Type != mad.RMPPData { // about a transfer of ours
		if t := a.out[key]; t != nil {
			a.client(p).acks = true
			t.s.Take(m, a.since())
			a.pump()
		}
		return
	}
	if m.Method == mad.MethodReportResp {
		a.reported(m)
		return
	}
	if m.Method&0x80 != 0 {
		return
	}
	data := m.Data[:]
	if m.Active() && m.Method == mad.MethodGetMulti {
		var whole bool
		if *m, data, whole = a.assemble(key, p, m); !whole {
			return
		}
	}
	a.client(p).asked++
	a.serve(p, m, data)
}

// client is what is known of who sent a MAD.
func (a *administration) client(p *Packet) *habits {
	key := client{p.LID, p.QPN}
	h := a.clients[key]
	if h == nil {
		if len(a.clients) >= maxClients && len(a.out) == 0 {
			clear(a.clients)
		}
		h = &habits{}
		a.clients[key] = h
	}
	return h
}

// serve answers a request.
func (a *administration) serve(p *Packet, m *mad.SA, data []byte) {
	s := a.sm
	if s.state != mad.SMMaster || s.live == nil {
		return // another one answers
	}
	r := &a.asked
	*r = request{sa: *m, data: data, from: p, port: s.live.EndPortOfLID(p.LID)}
	if r.port == none {
		return
	}
	if m.SMKey != 0 {
		if m.SMKey != s.cfg.SAKey {
			s.say(EventTrap, "request from LID %d to the subnet administration with the wrong SM_Key %#x", p.LID, m.SMKey)
			return // IBA 15.4.1.1 has it ignored
		}
		r.trusted = true
	}
	a.answer(r)
}

// answer finds out what is asked.
func (a *administration) answer(r *request) {
	switch r.sa.AttributeID {
	case mad.AttrClassPortInfo:
		a.classPortInfo(r)
	case mad.AttrPathRecord:
		a.pathRecords(r)
	case mad.AttrMultiPathRecord:
		a.multiPathRecords(r)
	case mad.AttrMCMemberRecord:
		a.memberRecords(r)
	case mad.AttrServiceRecord:
		a.serviceRecords(r)
	case mad.AttrInformInfo:
		a.informInfo(r)
	case mad.AttrGUIDInfoRecord:
		if r.sa.Method == mad.MethodSet || r.sa.Method == mad.MethodDelete {
			a.setGUIDs(r)
			return
		}
		a.records(r)
	default:
		a.records(r)
	}
}

// records answers Get and GetTable of the records that stand for something in the subnet.
func (a *administration) records(r *request) {
	k := kindOf(r.sa.AttributeID)
	switch {
	case k == nil:
		a.refuse(r, mad.StatusAttributeUnsupported)
		return
	case r.sa.Method != mad.MethodGet && r.sa.Method != mad.MethodGetTable:
		a.refuse(r, mad.StatusMethodUnsupported)
		return
	case k.trusted && !r.trusted, len(k.fields) < 64 && r.sa.ComponentMask>>len(k.fields) != 0:
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	q := k.query(a, r)
	var table []byte
	n := 0
	for _, p := range q.ports {
		k.each(a, p, func(record []byte) {
			if len(table) <= maxTable && k.match(q.template, record, r.sa.ComponentMask, r.sa.AttributeModifier) {
				table = append(table, record...)
				n++
			}
		})
	}
	a.respond(r, table, n, k.stride)
}

// respond sends records that were found, each of stride bytes.
func (a *administration) respond(r *request, table []byte, n, stride int) {
	switch {
	case len(table) > maxTable:
		a.refuse(r, mad.SANoResources)
	case r.sa.Method == mad.MethodGet && n == 0:
		a.refuse(r, mad.SANoRecords)
	case r.sa.Method == mad.MethodGet && n > 1:
		a.refuse(r, mad.SATooManyRecords)
	case r.sa.Method == mad.MethodGet:
		a.one(r, table)
	default:
		a.many(r, table, n, stride)
	}
}

// head is the header of the answer to a request.
func (r *request) head(status uint16) mad.SA {
	m := r.sa
	m.Status, m.RMPP, m.Data = status, mad.RMPP{}, [mad.SADataLen]byte{}
	if m.Method = r.sa.Method | 0x80; r.sa.Method == mad.MethodSet {
		m.Method = mad.MethodGetResp
	}
	return m
}

// one answers with one record.
func (a *administration) one(r *request, record []byte) {
	m := r.head(mad.StatusOK)
	copy(m.Data[:], record)
	a.send(r.from, &m)
}

// refuse answers with a status, and with what was asked.
func (a *administration) refuse(r *request, status uint16) {
	m := r.head(status)
	m.Data = r.sa.Data
	a.send(r.from, &m)
}

// send sends a MAD to where another came from.
func (a *administration) send(to *Packet, m *mad.SA) {
	if len(a.sm.answers) >= maxAnswers {
		return
	}
	p := Packet{LID: to.LID, QPN: to.QPN, LocalQPN: 1, SL: to.SL, PKeyIndex: to.PKeyIndex}
	m.Append(p.MAD[:0])
	a.sm.answers = append(a.sm.answers, p)
}

// advance does what is due.
func (a *administration) advance() {
	a.pump()
	for key, in := range a.in {
		if a.sm.now.Sub(in.since) > 10*time.Second {
			delete(a.in, key)
		}
	}
	a.expire()
	a.legaciesOver()
	a.repeat()
}

// deadline is when advance is wanted.
func (a *administration) deadline() clock.Time {
	d := clock.Min(a.leaseEnds, a.legaciesEnd)
	for _, t := range a.out {
		if at := t.s.Deadline(); at > 0 {
			d = clock.Min(d, clock.Time(at))
		}
	}
	for _, in := range a.in {
		d = clock.Min(d, in.since.Add(10*time.Second+1))
	}
	for _, r := range a.reports {
		d = clock.Min(d, r.at)
	}
	return d
}

// classPortInfo says what the administration can do (IBA 15.2.1.1).
func (a *administration) classPortInfo(r *request) {
	if r.sa.Method != mad.MethodGet {
		a.refuse(r, mad.StatusMethodUnsupported)
		return
	}
	c := mad.ClassPortInfo{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersionSA, RespTime: 16,
		CapabilityMask:  mad.SACapGetSetSupported | mad.SACapMulticast | mad.SACapMultiPath | mad.SACapPortInfoCapMaskMatch,
		CapabilityMask2: mad.SACap2ReversePathPKey | mad.SACap2FullPortInfo,
	}
	c.Redirect.QPN, c.Redirect.QKey, c.Trap.QKey = 1, 0x80010000, 0x80010000
	a.one(r, c.Append(nil))
}

// changed looks at what a sweep has changed: it tells subscribers of ports that came and went.
func (a *administration) changed(old, now *Subnet) {
	a.sm.groupsChanged = a.sm.groupsChanged || len(a.groups) > 0 && old == nil
	if old == nil {
		return
	}
	for _, p := range now.endPorts() {
		if guid := now.Ports[p].GUID; old.EndPortOfGUID(guid) == none {
			a.notify(mad.TrapGIDInService, a.gid(guid))
		}
	}
	for _, p := range old.endPorts() {
		guid := old.Ports[p].GUID
		if now.EndPortOfGUID(guid) != none {
			continue
		}
		a.notify(mad.TrapGIDOutOfService, a.gid(guid))
		a.takeGUIDs(guid)
		a.gone(guid)
	}
}

// gid is the first GID of a port.
func (a *administration) gid(guid uint64) (g ib.GID) {
	for i := range 8 {
		g[i], g[8+i] = byte(a.sm.cfg.Prefix>>(56-8*i)), byte(guid>>(56-8*i))
	}
	return g
}

// portOfGID is the end port of a GID: of the subnet's prefix or the link-local one. foreign: it is of another subnet.
func (a *administration) portOfGID(g ib.GID) (p int32, foreign bool) {
	var prefix, guid uint64
	for i := range 8 {
		prefix, guid = prefix<<8|uint64(g[i]), guid<<8|uint64(g[8+i])
	}
	if prefix != a.sm.cfg.Prefix && prefix != DefaultPrefix {
		return none, true
	}
	return a.endPortOf(guid), false
}

// visible says whether a port may know of another: they share a partition (IBA 15.4.1.2).
func (a *administration) visible(r *request, p int32) bool {
	return r.trusted || r.port == p || shareKey(a.sm.live.Ports[r.port].PKeys, a.sm.live.Ports[p].PKeys, 0) != 0
}
