package administration

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// subscription says who wants to be notified of what.
type subscription struct {
	lid  ib.LID
	guid uint64
	gid  ib.GID
	qpn  ib.QPN
	info mad.InformInfo
}

// report is a notice being sent to a subscriber.
type report struct {
	tid   uint32
	to    Address
	m     mad.SA
	at    clock.Time
	tries int
}

const (
	reportTimeout = time.Second
	reportTries   = 4
	maxReports    = 4096
	anyLID        = ib.LID(0xffff)
	anyTrap       = 0xffff
	anyProducer   = 0xffffff
)

// informInfo adds and removes subscriptions (IBA 13.4.8.3).
func (a *SA) informInfo(r *request) {
	if r.sa.Method != mad.MethodSet {
		a.refuse(r, mad.StatusMethodUnsupported)
		return
	}
	info, err := mad.ParseInformInfo(r.data)
	if err != nil {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	port := &a.live.Ports[r.port]
	qpn := r.from.QPN
	if !info.Subscribe && info.QPN != 0 {
		qpn = info.QPN // the queue pair whose subscription ends
	}
	key := info
	key.Subscribe, key.QPN = true, qpn
	i := a.subscribed(port.GUID, key)
	key.RespTime = info.RespTime
	switch {
	case info.Subscribe && i < 0:
		if len(a.subs) >= maxSubs {
			a.refuse(r, mad.SANoResources)
			return
		}
		a.subs = append(a.subs, &subscription{r.from.LID, port.GUID, a.gid(port.GUID), qpn, key})
	case !info.Subscribe && i < 0:
		a.refuse(r, mad.SARequestInvalid)
		return
	case !info.Subscribe:
		a.subs = slices.Delete(a.subs, i, i+1)
	}
	a.revision++
	a.one(r, r.data[:mad.InformInfoLen])
}

// subscribed finds a subscription of a port; its response time does not matter for the comparison.
func (a *SA) subscribed(guid uint64, key mad.InformInfo) int {
	key.RespTime = 0
	return slices.IndexFunc(a.subs, func(s *subscription) bool {
		info := s.info
		info.RespTime = 0
		return s.guid == guid && info == key
	})
}

func (a *SA) eachSubscription(_ int32, emit func([]byte)) {
	for i, s := range a.subs {
		r := mad.InformInfoRecord{SubscriberGID: s.gid, Enum: uint16(i), Info: s.info}
		emit(pad(r.Append(nil), 64))
	}
}

// notify tells subscribers of something that the administration itself knows: traps 64 to 67 (IBA
// 14.2.5.1).
func (a *SA) notify(trap uint16, gid ib.GID) {
	self := &a.live.Ports[a.live.Self]
	n := mad.Notice{IsGeneric: true, Type: mad.NoticeSubnet, ProducerType: mad.ProducerClassManager, TrapNumber: trap,
		IssuerLID:   self.Info.LID,
		DataDetails: mad.TrapGID{GID: gid}.Details(), IssuerGID: a.gid(self.GUID)}
	a.forward(&n)
}

// Forward sends a port's notice to its subscribers.
func (a *SA) Forward(now clock.Time, n *mad.Notice) {
	a.now = now
	a.forward(n)
}

func (a *SA) forward(n *mad.Notice) {
	if a.live == nil {
		return
	}
	notice := *n
	if notice.IssuerGID.IsZero() {
		if p := a.live.EndPortOfLID(n.IssuerLID); p != topology.None {
			notice.IssuerGID = a.gid(a.live.Ports[p].GUID)
		}
	}
	for _, s := range a.subs {
		if !s.wants(&notice) || len(a.reports) >= maxReports {
			continue
		}
		p := a.live.EndPortOfGUID(s.guid)
		if p == topology.None {
			continue
		}
		a.tid++
		m := mad.NewSA(mad.MethodReport, mad.AttrNotice, 0, uint64(a.tid))
		notice.AppendWithGID(m.Data[:0])
		to := Address{LID: a.live.Ports[p].Info.LID, QPN: s.qpn}
		a.m.Send(to, &m)
		a.reports = append(a.reports, &report{a.tid, to, m, a.now.Add(reportTimeout), 1})
	}
}

// wants reports whether a notice matches the subscription.
func (s *subscription) wants(n *mad.Notice) bool {
	i := &s.info
	switch {
	case !i.GID.IsZero() && i.GID != n.IssuerGID:
		return false
	case i.GID.IsZero() && i.LIDBegin != anyLID && i.LIDBegin != 0 && (n.IssuerLID < i.LIDBegin || n.IssuerLID > max(i.LIDBegin, i.LIDEnd)):
		return false
	case i.IsGeneric != n.IsGeneric || i.Type != anyTrap && i.Type != uint16(n.Type):
		return false
	}
	return (i.TrapNumber == anyTrap || i.TrapNumber == n.TrapNumber) && (i.ProducerType == anyProducer || i.ProducerType == n.ProducerType)
}

// reported ends a report that was acknowledged.
func (a *SA) reported(m *mad.SA) {
	a.reports = slices.DeleteFunc(a.reports, func(r *report) bool { return r.tid == uint32(m.TransactionID) })
}

// repeat retransmits reports that were not acknowledged, and finally gives up.
func (a *SA) repeat() {
	keep := a.reports[:0]
	for _, r := range a.reports {
		if !a.now.Before(r.at) {
			if r.tries == reportTries {
				continue
			}
			r.tries++
			r.at = a.now.Add(reportTimeout)
			a.m.Send(r.to, &r.m)
		}
		keep = append(keep, r)
	}
	clear(a.reports[len(keep):])
	a.reports = keep
}
