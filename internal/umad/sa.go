package umad

import (
	"context"

	"github.com/softvpi/softvpi/wire/mad"
)

// saHeaderLen is the offset of the records in a MAD of subnet administration (IBA 15.2.1.1).
const saHeaderLen = mad.Len - mad.SADataLen

// rmppFlags is the offset of the flag that marks a MAD as a segment (IBA 13.6.2).
const rmppFlags = 26

// rmppVersion is the version in every segment of a transfer. A MAD that is flagged as a segment but has no
// version was never segmented: its sender left that to a transport that does not do it, like ibsim's
// clients.
const rmppVersion = 1

// segmented parses a segment of a subnet administration answer; false: it is none.
func segmented(d *Datagram) (*mad.SA, bool) {
	if d.MAD[1] != mad.ClassSubnetAdm || d.MAD[rmppFlags]&mad.RMPPActive == 0 {
		return nil, false
	}
	m, err := mad.ParseSA(d.MAD[:])
	if err != nil || !m.Active() || m.RMPP.Version != rmppVersion {
		return nil, false
	}
	return &m, true
}

// take handles a segment: it returns whether the answer is complete, what to send back, and why the
// transfer was aborted. After the acknowledgement of a request that is itself segmented, the other end
// must be told that it may begin (IBA 13.6.6.3).
func (r *pending) take(m *mad.SA, d *Datagram) (over bool, reply *mad.SA, err error) {
	if m.RMPP.Type == mad.RMPPAck {
		turn := *m
		turn.Method &^= responseBit
		turn.Data, turn.RMPP.Data1, turn.RMPP.Data2 = [mad.SADataLen]byte{}, 0, 1
		return false, &turn, nil
	}
	if r.transfer == nil {
		r.transfer = &mad.RMPPReceiver{}
	}
	answer, answered, done, err := r.transfer.Take(m)
	if answered {
		reply = &answer
	}
	if done {
		first, data := r.transfer.Result()
		d.Records = append([]byte{}, data...)
		d.MAD = [mad.Len]byte(first.Append(nil))
	}
	return done || err != nil, reply, err
}

// Answer is an answer of subnet administration.
type Answer struct {
	mad.SA
	Records []byte // one after the other, each AttrOffset times eight bytes long
	Cut     bool   // there may be more records, which a transport has dropped
}

// Query queries subnet administration; the answer may have any length. Its status is not checked. The
// errors are those of Call, and *mad.RMPPError for an aborted transfer.
func (p *Port) Query(ctx context.Context, to Address, request *mad.SA, t Timing) (*Answer, error) {
	d, err := p.Call(ctx, to, (*[mad.Len]byte)(request.Append(nil)), t)
	if err != nil {
		return nil, err
	}
	a := &Answer{Records: d.Records}
	if a.SA, err = mad.ParseSA(d.MAD[:]); err != nil {
		return nil, err
	}
	if d.Records == nil {
		end := mad.Len
		if d.Length >= saHeaderLen {
			end = d.Length
		}
		a.Records = d.MAD[saHeaderLen:end]
		a.Cut = a.Active() && end == mad.Len
	}
	return a, nil
}
