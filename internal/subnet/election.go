package subnet

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// otherSM is another subnet manager.
type otherSM struct {
	at   int32
	info mad.SMInfo
}

// outranks reports whether a is to be master rather than b: the higher priority wins, then the lower GUID
// (IBA 14.4.1.2).
func outranks(a, b *mad.SMInfo) bool {
	return a.Priority > b.Priority || a.Priority == b.Priority && a.GUID < b.GUID
}

// smInfo returns this manager's SMInfo.
func (s *SM) smInfo() mad.SMInfo {
	return mad.SMInfo{GUID: s.guid, SMKey: s.cfg.SMKey, ActCount: s.actCount, Priority: s.cfg.Priority, State: s.state}
}

func (s *SM) become(state mad.SMState) {
	if s.state == state {
		return
	}
	s.state = state
	switch state {
	case mad.SMStandby:
		s.say(EventState, "Entering STANDBY state")
	case mad.SMDiscovering:
		s.say(EventState, "Entering DISCOVERING state")
	case mad.SMNotActive:
		s.say(EventState, "Entering NOT-ACTIVE state")
	}
}

// elect decides who is to be master, once all others are known; false: another manager is.
func (s *SM) elect() bool {
	self := s.smInfo()
	var master, above *otherSM
	for _, o := range s.others {
		switch {
		case o.info.State == mad.SMMaster && (master == nil || outranks(&o.info, &master.info)):
			master = o
		case o.info.State != mad.SMNotActive && outranks(&o.info, &self) && (above == nil || outranks(&o.info, &above.info)):
			above = o
		}
	}
	s.unsettled = false
	for _, o := range s.others {
		s.unsettled = s.unsettled || o.info.State == mad.SMDiscovering
	}
	switch {
	case s.handedOver:
	case s.state == mad.SMMaster && master != nil && outranks(&master.info, &self):
		s.handOver(master)
		return false
	case s.state == mad.SMMaster && above != nil && above.info.State == mad.SMStandby && master == nil:
		s.handOver(above)
		return false
	case s.state == mad.SMMaster:
	case master != nil:
		s.standBy(master)
		return false
	case above != nil:
		s.standBy(above)
		return false
	}
	if s.state != mad.SMMaster {
		s.state, s.firstDone, s.reregister = mad.SMMaster, false, true
		if len(s.others) > 0 && !s.cfg.HonorLIDs && !s.cfg.Reassign {
			s.forgetLIDs() // what ports have is newer than what we remember
		}
		clear(s.tables)
		s.inheriting = true
	}
	if s.handedOver {
		s.handedOver = false
		if master != nil {
			s.x.push(work{at: master.at, attr: mad.AttrSMInfo, mod: mad.SMAcknowledge, set: true, kind: kindHandover})
		}
	}
	return true
}

// forgetLIDs drops the remembered LIDs of ports that have LIDs.
func (s *SM) forgetLIDs() {
	for _, p := range s.cur.EndPorts() {
		if lid := s.cur.Ports[p].Info.LID; lid != 0 && lid <= ib.LIDMaxUnicast {
			delete(s.lids, s.cur.Ports[p].GUID)
		}
	}
}

// standBy waits, and polls the master from time to time.
func (s *SM) standBy(o *otherSM) {
	s.x.clear()
	s.become(mad.SMStandby)
	s.master, s.pollMissed = o.info.GUID, 0
	s.stage, s.pollAt, s.sweepAt = stageIdle, s.now.Add(s.cfg.PollInterval), clock.Never
}

// handOver makes another subnet manager the master.
func (s *SM) handOver(o *otherSM) {
	s.say(EventNotice, "handing over to the subnet manager with port GUID %#016x and priority %d", o.info.GUID, o.info.Priority)
	s.standBy(o)
	s.x.push(work{at: o.at, attr: mad.AttrSMInfo, mod: mad.SMHandover, set: true, kind: kindHandover})
}

// poll asks the master whether it is alive.
func (s *SM) poll() {
	s.pollAt = clock.Never
	if o := s.others[s.master]; o != nil {
		s.x.push(work{at: o.at, attr: mad.AttrSMInfo, kind: kindPoll})
		return
	}
	s.takeOver()
}

// takeOver looks for a master again, and becomes master if there is none.
func (s *SM) takeOver() {
	s.pollAt = clock.Never
	s.become(mad.SMDiscovering)
	s.discover()
}

// polled handles a poll or a handover that was not answered.
func (s *SM) polled(w work) bool {
	if w.kind == kindHandover {
		return true
	}
	if w.attr != mad.AttrSMInfo || w.kind != kindPoll {
		return false
	}
	s.missed()
	return true
}

func (s *SM) missed() {
	if s.pollMissed++; s.pollMissed > s.cfg.PollRetries {
		s.say(EventNotice, "the master subnet manager does not answer any more")
		s.takeOver()
		return
	}
	s.pollAt = s.now.Add(min(time.Second, s.cfg.PollInterval))
}

// onSMInfo handles the response of another subnet manager.
func (s *SM) onSMInfo(w work, smp *mad.SMP) {
	info, err := mad.ParseSMInfo(smp.Data[:])
	if err != nil || w.kind == kindHandover {
		return
	}
	if w.kind == kindPoll {
		if o := s.others[s.master]; o != nil {
			o.info = info
		}
		if info.State == mad.SMMaster || info.State == mad.SMDiscovering {
			s.pollMissed, s.pollAt = 0, s.now.Add(s.cfg.PollInterval)
			return
		}
		s.missed()
		return
	}
	if info.SMKey != 0 && info.SMKey != s.cfg.SMKey {
		s.problem("the subnet manager at %s has another SM_Key: it is not heeded", s.cur.Name(w.at))
		return
	}
	if s.stage == stageDiscover {
		s.others[info.GUID] = &otherSM{w.at, info}
	}
}

// asked handles a request to this manager: SMInfo, or a trap.
func (s *SM) asked(p *Packet, smp *mad.SMP) {
	switch {
	case smp.Method == mad.MethodTrap && smp.AttributeID == mad.AttrNotice:
		s.onTrap(p, smp)
	case smp.AttributeID == mad.AttrSMInfo && (smp.Method == mad.MethodGet || smp.Method == mad.MethodSet):
		s.answerSMInfo(p, smp)
	}
}

func (s *SM) answerSMInfo(p *Packet, smp *mad.SMP) {
	set := smp.Method == mad.MethodSet
	status := uint16(mad.StatusOK)
	after := func() {}
	if set {
		remote, _ := mad.ParseSMInfo(smp.Data[:])
		status, after = s.control(smp.AttributeModifier, &remote)
	}
	smp.Method = mad.MethodGetResp
	smp.SetStatus(status, true)
	info := s.smInfo()
	smp.Data = [mad.SMPDataLen]byte{}
	info.Append(smp.Data[:0])
	s.reply(p, smp)
	after()
}

// control obeys another subnet manager if the state permits (IBA 14.4.1.1).
func (s *SM) control(modifier uint32, remote *mad.SMInfo) (status uint16, after func()) {
	refuse := uint16(mad.StatusInvalidField)
	switch {
	case modifier == mad.SMHandover && s.state == mad.SMStandby, modifier == mad.SMDiscover && s.state == mad.SMStandby:
		return mad.StatusOK, func() {
			s.handedOver = modifier == mad.SMHandover
			s.x.clear()
			s.stage = stageIdle
			s.takeOver()
		}
	case modifier == mad.SMHandover && s.state == mad.SMMaster: // two masters have met
		self := s.smInfo()
		if outranks(remote, &self) {
			return refuse, func() {}
		}
		return mad.StatusOK, s.soon
	case modifier == mad.SMAcknowledge:
		return mad.StatusOK, func() {}
	case modifier == mad.SMDisable && s.state == mad.SMStandby:
		return mad.StatusOK, func() {
			s.x.clear()
			s.stage = stageIdle
			s.become(mad.SMNotActive)
		}
	case modifier == mad.SMStandbyCtl && s.state == mad.SMNotActive:
		return mad.StatusOK, s.takeOver
	}
	return refuse, func() {}
}

// maxAnswers limits the responses that wait to be sent: more are dropped, as if lost.
const maxAnswers = 8192

// reply sends an SMP back to the sender of p.
func (s *SM) reply(p *Packet, smp *mad.SMP) {
	if len(s.answers) >= maxAnswers {
		return
	}
	out := Packet{LID: p.LID, QPN: p.QPN, LocalQPN: p.LocalQPN, SL: p.SL, PKeyIndex: p.PKeyIndex}
	smp.Append(out.MAD[:0])
	s.answers = append(s.answers, out)
}

// onTrap handles a port's notice and represses it.
func (s *SM) onTrap(p *Packet, smp *mad.SMP) {
	n, err := mad.ParseNotice(smp.Data[:])
	if err != nil {
		return
	}
	repress := *smp
	repress.Method, repress.MKey = mad.MethodTrapRepress, s.cfg.MKey
	repress.SetStatus(mad.StatusOK, repress.Directed())
	s.reply(p, &repress)
	if s.state != mad.SMMaster {
		return
	}
	s.say(EventTrap, "%s", describeTrap(&n))
	if n.IsGeneric && !s.cfg.IgnoreTraps {
		switch n.TrapNumber {
		case mad.TrapCapabilityMask, mad.TrapSystemImageGUID:
			s.whole = true
			s.trapped()
			s.watchIssuer(n.IssuerLID)
		case mad.TrapLinkStateChange:
			s.trapped()
		}
	}
	s.sa.Forward(s.now, &n)
}
