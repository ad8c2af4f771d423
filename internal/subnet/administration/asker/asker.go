// Package asker puts questions to a subnet administration as a host does. It is for tests, of the administration alone and of a manager with one.
package asker

import (
	"time"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Line is the way to an administration.
type Line interface {
	// Send has the administration receive a MAD from QP 1 of the port with a LID.
	Send(from ib.LID, m *mad.SA)
	// Run lets time pass. What the administration sends meanwhile is given to Asker.Take.
	Run(d time.Duration)
}

// Failer ends a test that cannot go on.
type Failer interface{ Fatal(args ...any) }

// Asker is a host that asks. Its fields may be changed between questions.
type Asker struct {
	LID     ib.LID
	Silent  bool     // it does not acknowledge packets of long answers
	Reports []mad.SA // that came

	t    Failer
	line Line
	tid  uint64
	hear func(*mad.SA) // takes what belongs to the question at hand
}

// New makes a host with a LID.
func New(t Failer, line Line, lid ib.LID) *Asker {
	return &Asker{LID: lid, t: t, line: line}
}

// Take takes a MAD that the administration has sent to a LID. One for others is left alone.
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

// Ask sends a request with a record, in several packets where it is longer than one, and returns the header and the data of the answer. No answer is status 0xffff.
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
