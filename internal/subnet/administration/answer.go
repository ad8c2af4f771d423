package administration

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/mad"
)

// request is the request being answered.
type request struct {
	sa      mad.SA
	data    []byte // its record, longer than a MAD if it came in several packets
	from    Address
	port    int32 // end port of the requester
	trusted bool
}

func (r *request) has(components uint64) bool { return r.sa.ComponentMask&components == components }

// Receive handles a MAD of the class.
func (a *SA) Receive(now clock.Time, p Address, b []byte) {
	a.now = now
	m := &a.came
	var err error
	if *m, err = mad.ParseSA(b); err != nil {
		return
	}
	key := peer{p.LID, p.QPN, m.TransactionID}
	if m.Active() && m.RMPP.Type != mad.RMPPData { // about one of our transfers
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

// client returns what is known about the sender of a MAD.
func (a *SA) client(p Address) *habits {
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
func (a *SA) serve(p Address, m *mad.SA, data []byte) {
	if a.live == nil || !a.m.Master() {
		return // another one answers
	}
	r := &a.asked
	*r = request{sa: *m, data: data, from: p, port: a.live.EndPortOfLID(p.LID)}
	if r.port == topology.None {
		return
	}
	if m.SMKey != 0 {
		if m.SMKey != a.cfg.Key {
			a.m.WrongKey(p.LID, m.SMKey)
			return // to be ignored according to IBA 15.4.1.1
		}
		r.trusted = true
	}
	a.answer(r)
}

// answer dispatches a request by its attribute.
func (a *SA) answer(r *request) {
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

// records answers Get and GetTable of the records that describe something in the subnet.
func (a *SA) records(r *request) {
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

// respond sends the n records found, each of stride bytes.
func (a *SA) respond(r *request, table []byte, n, stride int) {
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

// head returns the header of the response to a request.
func (r *request) head(status uint16) mad.SA {
	m := r.sa
	m.Status, m.RMPP, m.Data = status, mad.RMPP{}, [mad.SADataLen]byte{}
	if m.Method = r.sa.Method | 0x80; r.sa.Method == mad.MethodSet {
		m.Method = mad.MethodGetResp
	}
	return m
}

// one responds with one record.
func (a *SA) one(r *request, record []byte) {
	a.reply = r.head(mad.StatusOK)
	copy(a.reply.Data[:], record)
	a.m.Send(r.from, &a.reply)
}

// refuse responds with a status and the data of the request.
func (a *SA) refuse(r *request, status uint16) {
	a.reply = r.head(status)
	a.reply.Data = r.sa.Data
	a.m.Send(r.from, &a.reply)
}

// classPortInfo answers with the administration's capabilities (IBA 15.2.1.1).
func (a *SA) classPortInfo(r *request) {
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

// visible reports whether the requester may know of a port: they share a partition (IBA 15.4.1.2).
func (a *SA) visible(r *request, p int32) bool {
	return r.trusted || r.port == p || partition.Shared(a.live.Ports[r.port].PKeys, a.live.Ports[p].PKeys, 0) != 0
}

// allVisible returns the end ports that the requester may know of.
func (a *SA) allVisible(r *request) (list []int32) {
	n := a.live
	for i := range n.Ports {
		if p := int32(i); n.Ports[p].Reach && n.Ports[p].Known && n.Ports[p].Info.LID != 0 && a.visible(r, p) {
			list = append(list, p)
		}
	}
	return list
}
