// Package asker queries a subnet administration like a host does. It is for tests, of the administration
// alone and of a manager with one.
package asker

import (
	"time"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Line is the connection to an administration.
type Line interface {
	// Send makes the administration receive a MAD from QP 1 of the port with a LID.
	Send(from ib.LID, m *mad.SA)
	// Run lets time pass. What the administration sends meanwhile is passed to Asker.Take.
	Run(d time.Duration)
}

// Failer ends a test that cannot continue.
type Failer interface{ Fatal(args ...any) }

// Asker is a host that sends queries. Its fields may be changed between queries.
type Asker struct {
	LID     ib.LID
	Silent  bool     // do not acknowledge the packets of long responses
	Reports []mad.SA // that were received

	t    Failer
	line Line
	tid  uint64
	hear func(*mad.SA) // receives what belongs to the current query
}

// New creates a host with a LID.
func New(t Failer, line Line, lid ib.LID) *Asker {
	return &Asker{LID: lid, t: t, line: line}
}

// Take handles a MAD that the administration has sent to a LID. It ignores those for others.
func (k *Asker) Take(to ib.LID, b []byte) {
	if to != k.LID {
		return
	}
	m, err := mad.ParseSA(b)
	switch {
	case err != nil:
		k.t.Fatal(err)
	case m.Method == mad.MethodReport:
		k.Reports = append(k.Reports, m)
		m.Method = mad.MethodReportResp
		k.line.Send(k.LID, &m)
	case m.TransactionID == k.tid && k.hear != nil:
		k.hear(&m)
	}
}

// Ask sends a request with a record, in several packets if necessary, and returns the header and the data
// of the response. If there is none, the status is 0xffff.
func (k *Asker) Ask(method uint8, attribute uint16, components uint64, record []byte, change ...func(*mad.SA)) (head mad.SA, data []byte) {
	k.tid++
	m := mad.NewSA(method, attribute, 0, k.tid)
	m.ComponentMask = components
	copy(m.Data[:], record)
	for _, c := range change {
		c(&m)
	}
	head.Status = 0xffff
	var r mad.RMPPReceiver
	var s *mad.RMPPSender
	k.hear = func(a *mad.SA) {
		switch {
		case !a.Active():
			head, data = *a, a.Data[:]
			return
		case a.RMPP.Type == mad.RMPPAck && s != nil:
			s.Take(a, 1)
			return
		}
		answer, answered, done, err := r.Take(a)
		if err != nil {
			k.t.Fatal(err)
		}
		if done {
			head, data = r.Result()
		}
		if answered && !k.Silent {
			k.line.Send(k.LID, &answer)
		}
	}
	if len(record) <= mad.SADataLen {
		k.line.Send(k.LID, &m)
	} else {
		s = mad.NewRMPPSender(m, record)
		k.transfer(s)
	}
	k.line.Run(100 * time.Millisecond)
	return head, data
}

// transfer sends a request of several packets, as far as it is acknowledged.
func (k *Asker) transfer(s *mad.RMPPSender) {
	for range 100 {
		part, ok := s.Next(1)
		if !ok {
			k.line.Run(time.Millisecond)
			continue
		}
		k.line.Send(k.LID, &part)
	}
}
