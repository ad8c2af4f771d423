package umad

import (
	"context"

	"github.com/softvpi/softvpi/wire/mad"
)

// saHeaderLen is where the records begin in a MAD of subnet administration (IBA 15.2.1.1).
const saHeaderLen = mad.Len - mad.SADataLen

// rmppFlags is where a MAD says whether it is a segment (IBA 13.6.2).
const rmppFlags = 26

// rmppVersion is the version of every segment of a transfer. A MAD that is flagged as a segment and has none was never cut
// into segments: its sender left that to a transport which does not do it, as ibsim's clients do.
const rmppVersion = 1

// segmented reads a segment of an answer of subnet administration; false: it is none.
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

// take takes a segment in: whether the answer is over, what is to be sent back, and why the transfer was broken off. The
// acknowledgement of a request that is a segment itself has the other end told that it may begin (IBA 13.6.6.3).
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

// Answer is what subnet administration said.
type Answer struct {
	mad.SA
	Records []byte // one after the other, each AttrOffset times eight bytes long
	Cut     bool   // there may be more records, which a transport has dropped
}

// Query asks subnet administration, whose answer may have any length. What status it has is not looked at. The errors are
// those of Call, and an *mad.RMPPError for a transfer that was broken off.
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
