package administration

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// service is a service that a port offers until its lease expires.
type service struct {
	rec   mad.ServiceRecord
	until clock.Time
}

const leaseForEver = 0xffffffff

// serviceFields are the components of a ServiceRecord (IBA 15.2.5.14).
var serviceFields = fields(bytesAt(0, 8, 16, 2), reserved, bytesAt(28, 4, 16, 64),
	bytesAt(112, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 8, 8))

// serviceRecords handles all requests about services (IBA 15.2.5.14).
func (a *SA) serviceRecords(r *request) {
	rec, err := mad.ParseServiceRecord(r.data)
	if err != nil {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	switch r.sa.Method {
	case mad.MethodSet:
		a.offer(r, &rec)
	case mad.MethodDelete:
		a.withdraw(r, &rec)
	case mad.MethodGet, mad.MethodGetTable:
		a.listServices(r)
	default:
		a.refuse(r, mad.StatusMethodUnsupported)
	}
}

// offer adds a service, or changes the terms of an existing one.
func (a *SA) offer(r *request, rec *mad.ServiceRecord) {
	if !r.has(mad.ServiceComponentID) {
		a.refuse(r, mad.SAInsufficientComponents)
		return
	}
	if r.has(mad.ServiceComponentPKey) && !a.sharesKey(r, rec) {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	until := clock.Never
	if r.has(mad.ServiceComponentLease) && rec.Lease != leaseForEver {
		until = a.now.Add(time.Duration(rec.Lease) * time.Second)
	} else {
		rec.Lease = leaseForEver
	}
	if i := a.serviceAt(rec); i >= 0 {
		old := a.services[i]
		if old.rec.Key != rec.Key && old.rec.Key != [16]byte{} {
			a.refuse(r, mad.SARequestInvalid) // the owner must present the key
			return
		}
		old.rec, old.until = *rec, until
	} else {
		if len(a.services) >= maxServices {
			a.refuse(r, mad.SANoResources)
			return
		}
		a.services = append(a.services, &service{*rec, until})
	}
	a.revision++
	a.leaseEnds = clock.Min(a.leaseEnds, until)
	answer := *rec
	if !r.has(mad.ServiceComponentPKey) {
		answer.PKey = ib.PKeyDefault
	}
	if !r.trusted {
		answer.Key = [16]byte{}
	}
	a.one(r, answer.Append(nil))
}

// sharesKey reports whether the requester is in the partition of a service. A service without a partition
// is for all.
func (a *SA) sharesKey(r *request, rec *mad.ServiceRecord) bool {
	return rec.PKey == 0 || partition.Find(a.live.Ports[r.port].PKeys, rec.PKey) != 0
}

// serviceAt finds a service by what identifies it: ID, GID and P_Key.
func (a *SA) serviceAt(rec *mad.ServiceRecord) int {
	return slices.IndexFunc(a.services, func(s *service) bool {
		return s.rec.ID == rec.ID && s.rec.GID == rec.GID && s.rec.PKey&0x7fff == rec.PKey&0x7fff
	})
}

// matching returns the services that match the components of a request.
func (a *SA) matching(r *request) (list []int) {
	k := recordKind{attr: mad.AttrServiceRecord, fields: serviceFields}
	for i, s := range a.services {
		if !r.trusted && !a.sharesKey(r, &s.rec) {
			continue
		}
		if k.match(r.data, s.rec.Append(nil), r.sa.ComponentMask&^mad.ServiceComponentLease, 0) {
			list = append(list, i)
		}
	}
	return list
}

// listServices lists services. Their keys are shown only to those who know that of the administration.
func (a *SA) listServices(r *request) {
	var table []byte
	list := a.matching(r)
	for _, i := range list {
		rec := a.services[i].rec
		if until := a.services[i].until; until != clock.Never {
			rec.Lease = uint32(max(0, until.Sub(a.now)) / time.Second)
		}
		if !r.trusted {
			rec.Key = [16]byte{}
		}
		table = rec.Append(table)
	}
	a.respond(r, table, len(list), mad.ServiceRecordLen)
}

// withdraw removes services.
func (a *SA) withdraw(r *request, _ *mad.ServiceRecord) {
	list := a.matching(r)
	if len(list) == 0 {
		a.refuse(r, mad.SANoRecords)
		return
	}
	rec := a.services[list[0]].rec
	if !r.trusted {
		rec.Key = [16]byte{}
	}
	a.services = slices.Delete(a.services, list[0], list[0]+1)
	a.revision++
	a.one(r, rec.Append(nil))
}

// expire removes services whose lease is over.
func (a *SA) expire() {
	if a.now.Before(a.leaseEnds) {
		return
	}
	a.revision++
	a.services = slices.DeleteFunc(a.services, func(s *service) bool { return !a.now.Before(s.until) })
	a.leaseEnds = clock.Never
	for _, s := range a.services {
		a.leaseEnds = clock.Min(a.leaseEnds, s.until)
	}
}
