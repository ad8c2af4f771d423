package osmtest

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// maxReports limits the reports that wait to be handled; more are lost.
const maxReports = 256

// reports receives the reports that arrive at the port from now on, and answers them (IBA 13.4.11).
func (t *test) reports() (<-chan mad.Notice, error) {
	came := make(chan mad.Notice, maxReports)
	err := t.port.Serve(mad.ClassSubnetAdm, func(d *umad.Datagram) *[mad.Len]byte {
		m, err := mad.ParseSA(d.MAD[:])
		if err != nil || m.Method != mad.MethodReport || m.AttributeID != mad.AttrNotice {
			return nil
		}
		if n, err := mad.ParseNotice(m.Data[:]); err == nil {
			select {
			case came <- n:
			default:
			}
		}
		m.Method = mad.MethodReportResp
		return (*[mad.Len]byte)(m.Append(nil))
	})
	return came, err
}

// subscribe subscribes to the reports of some traps, or unsubscribes.
func (t *test) subscribe(on bool, traps ...uint16) error {
	info := mad.InformInfo{LIDBegin: 0xffff, IsGeneric: true, Subscribe: on, Type: 0xffff, RespTime: 18, ProducerType: 0xffffff}
	if !on {
		info.QPN = umad.GSIQP
	}
	for _, info.TrapNumber = range traps {
		name := fmt.Sprintf("subscribing to trap %d", info.TrapNumber)
		if !on {
			name = fmt.Sprintf("ending the subscription to trap %d", info.TrapNumber)
		}
		if _, err := t.check(rule{name: name, method: mad.MethodSet, attr: mad.AttrInformInfo, data: info.Append(nil)}); err != nil {
			return err
		}
	}
	return nil
}

// await waits for the report of a trap for which about returns true.
func (t *test) await(came <-chan mad.Notice, patience time.Duration, trap uint16, about func(*mad.Notice) bool) (bool, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case n := <-came:
			t.say(logVerbose, "report of trap %d from LID %d", n.TrapNumber, n.IssuerLID)
			if n.IsGeneric && n.TrapNumber == trap && about(&n) {
				return true, nil
			}
		case <-timer.C:
			return false, nil
		case <-t.ctx.Done():
			return false, t.ctx.Err()
		}
	}
}

// reportIn returns how long to wait for a report.
func (t *test) reportIn() time.Duration { return max(5*time.Second, 3*t.o.timeout) }

// events is flow e: reports of the administration's own events (traps 66 and 67) and of a port's trap
// (144) must reach a subscriber, but no longer after it has unsubscribed.
func (t *test) events() error {
	came, err := t.reports()
	if err != nil {
		return err
	}
	traps := []uint16{mad.TrapMulticastCreated, mad.TrapMulticastDeleted, mad.TrapCapabilityMask}
	if err := t.subscribe(true, traps...); err != nil {
		return err
	}
	own := t.ownGID()
	group := ib.GID{0xff, 0x12, 0xa0, 0x1c, 4: 0x0e, 10: own[10], 11: own[11], 12: own[12], 13: own[13], 14: own[14], 15: own[15]}
	told := func(n *mad.Notice) bool { return mad.ParseTrapGID(&n.DataDetails).GID == group }
	lid := t.port.Device().Port.LID
	for _, s := range []struct {
		name  string
		do    func() error
		trap  uint16
		about func(*mad.Notice) bool
	}{
		{"a group is made", func() error { return t.make(group) }, mad.TrapMulticastCreated, told},
		{"the group is left", func() error { return t.leave(group) }, mad.TrapMulticastDeleted, told},
		{"the port sends a trap", t.trap, mad.TrapCapabilityMask, func(n *mad.Notice) bool { return n.IssuerLID == lid }},
	} {
		if err := s.do(); err != nil {
			return err
		}
		ok, err := t.await(came, t.reportIn(), s.trap, s.about)
		if err != nil {
			return err
		}
		if !ok {
			t.wrong("%s: no report of trap %d came", s.name, s.trap)
		}
		t.say(logInfo, "%s: report of trap %d: %v", s.name, s.trap, ok)
	}
	if err := t.subscribe(false, traps...); err != nil {
		return err
	}
	if err := t.make(group); err != nil {
		return err
	}
	if err := t.leave(group); err != nil {
		return err
	}
	switch ok, err := t.await(came, 1500*time.Millisecond, mad.TrapMulticastCreated, told); {
	case err != nil:
		return err
	case ok:
		t.wrong("a report came after the subscription had ended")
	}
	return nil
}

const (
	memberJoin   = mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState
	memberCreate = memberJoin | mad.MemberQKey | mad.MemberPKey | mad.MemberSL | mad.MemberFlowLabel | mad.MemberTrafficClass
)

func (t *test) make(group ib.GID) error {
	r := t.member(group, 1)
	_, err := t.check(rule{name: "make a group", method: mad.MethodSet, attr: mad.AttrMCMemberRecord, mask: memberCreate,
		data: r.Append(nil)})
	return err
}

func (t *test) leave(group ib.GID) error {
	r := t.member(group, 1)
	_, err := t.check(rule{name: "leave a group", method: mad.MethodDelete, attr: mad.AttrMCMemberRecord, mask: memberJoin,
		data: r.Append(nil)})
	return err
}

// trap sends the subnet manager a trap in the port's name, about its capabilities, which have not changed.
func (t *test) trap() error {
	d := t.port.Device()
	p := &d.Port
	n := mad.Notice{IsGeneric: true, Type: mad.NoticeInformational, ProducerType: uint32(d.Node.NodeType),
		TrapNumber: mad.TrapCapabilityMask,
		IssuerLID:  p.LID, DataDetails: mad.TrapCapability{LID: p.LID, CapabilityMask: p.CapabilityMask}.Details()}
	m := mad.NewSMP(mad.MethodTrap, mad.AttrNotice, 0, uint64(time.Now().UnixNano()))
	n.Append(m.Data[:0])
	return t.port.Send(&umad.Datagram{Remote: umad.Address{LID: t.to.LID, QP: umad.SMIQP}, LocalQP: umad.SMIQP,
		MAD: [mad.Len]byte(m.Append(nil))})
}

// ports is flow t: meanwhile somebody removes a port from the subnet and brings it back, both of which
// must be reported.
func (t *test) ports() error {
	came, err := t.reports()
	if err != nil {
		return err
	}
	traps := []uint16{mad.TrapGIDOutOfService, mad.TrapGIDInService}
	if err := t.subscribe(true, traps...); err != nil {
		return err
	}
	var gone ib.GID
	for _, s := range []struct {
		trap uint16
		what string
	}{{mad.TrapGIDOutOfService, "out of"}, {mad.TrapGIDInService, "in"}} {
		fmt.Fprintf(t.env.Stdout, "Waiting %v for trap %d: a port that goes %s service\n", t.o.wait, s.trap, s.what)
		ok, err := t.await(came, t.o.wait, s.trap, func(n *mad.Notice) bool {
			g := mad.ParseTrapGID(&n.DataDetails).GID
			if gone == (ib.GID{}) {
				gone = g
			}
			return g == gone
		})
		if err != nil {
			return err
		}
		if !ok {
			t.wrong("no report of trap %d came in %v", s.trap, t.o.wait)
		}
		t.say(logInfo, "trap %d: %v", s.trap, ok)
	}
	return t.subscribe(false, traps...)
}
