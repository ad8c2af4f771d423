package fabric

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// trapKey is what makes two traps the same: who tells, what, and of which of its ports.
type trapKey struct {
	port   int32
	number uint16
	about  uint8
}

// told is a trap that is sent until the subnet manager represses it, and then is kept as long as
// the next of its kind has to wait.
type told struct {
	trapKey
	kind      uint8
	repressed bool
	again     bool // it happened once more since it was sent
	details   mad.Details
	tid       uint64
	due       clock.Time // when it is sent next, or may be
}

// trapQueue is all traps of a fabric. There is at most one of a trapKey, however often it happens.
type trapQueue struct {
	now  clock.Time // the latest time told
	all  []told
	at   map[trapKey]int
	next uint64 // transaction
}

// trap tells the subnet manager of something at the port, which has the node's LID. A port
// that knows no subnet manager keeps it to itself (IBA 14.3.1).
func (f *Fabric) trap(own *port, kind uint8, number uint16, details mad.Details) {
	if own.info.MasterSMLID == 0 {
		return
	}
	key := trapKey{f.index(own), number, 0}
	if number >= mad.TrapLinkIntegrity && number <= mad.TrapFlowControl {
		key.about = mad.ParseTrapPort(&details).Port
	}
	q := &f.traps
	i, ok := q.at[key]
	if !ok {
		if q.at == nil {
			q.at = map[trapKey]int{}
		}
		i = len(q.all)
		q.at[key] = i
		q.all = append(q.all, told{trapKey: key, due: q.now})
	}
	t := &q.all[i]
	t.kind, t.details = kind, details
	if t.repressed || t.tid == 0 {
		q.next++
		t.tid, t.repressed, t.again = q.next, false, false
	} else {
		t.again = true
	}
}

// repressed ends the trap that a subnet manager has seen (IBA 14.3.9).
func (f *Fabric) repressed(own *port, tid uint64) {
	q := &f.traps
	for i := range q.all {
		t := &q.all[i]
		if t.tid != tid || t.port != f.index(own) {
			continue
		}
		if t.repressed = !t.again; t.again {
			q.next++
			t.tid, t.again = q.next, false
		}
	}
}

// Trap sends the next trap that is due, in p. The outcome says where it came to; false: none is due.
// Each is sent again, at most once in the port's SubnetTimeOut, until it is repressed.
func (f *Fabric) Trap(now clock.Time, p *Packet) (Outcome, bool) {
	f.traps.now = now
	q := &f.traps
	for i := 0; i < len(q.all); {
		t := &q.all[i]
		own := &f.ports[t.port]
		if t.repressed && !now.Before(t.due) || own.info.MasterSMLID == 0 {
			q.forget(i)
			continue
		}
		if t.repressed || now.Before(t.due) {
			i++
			continue
		}
		t.due = now.Add(4096 * time.Nanosecond << own.info.SubnetTimeOut)
		f.notice(own, t, p)
		return f.Send(now, f.place(own), p), true
	}
	return Outcome{}, false
}

func (q *trapQueue) forget(i int) {
	delete(q.at, q.all[i].trapKey)
	last := len(q.all) - 1
	if i != last {
		q.all[i] = q.all[last]
		q.at[q.all[i].trapKey] = i
	}
	q.all = q.all[:last]
}

// notice makes the packet of a trap.
func (f *Fabric) notice(own *port, t *told, p *Packet) {
	s := mad.NewSMP(mad.MethodTrap, mad.AttrNotice, 0, t.tid)
	n := mad.Notice{IsGeneric: true, Type: t.kind, ProducerType: uint32(f.nodes[own.node].kind), TrapNumber: t.number,
		IssuerLID: own.info.LID, DataDetails: t.details}
	n.Append(s.Data[:0])
	*p = Packet{SLID: own.info.LID, DLID: own.info.MasterSMLID, SL: own.info.MasterSMSL}
	s.Append(p.MAD[:0])
}

// TrapDeadline is when Trap is wanted next.
func (f *Fabric) TrapDeadline() clock.Time {
	at := clock.Never
	for i := range f.traps.all {
		at = clock.Min(at, f.traps.all[i].due)
	}
	return at
}

func (f *Fabric) index(p *port) int32 { return f.nodes[p.node].first + int32(p.number) }

// portStateChanged tells that a port of a switch went up or down: trap 128.
func (f *Fabric) portStateChanged(n *node) {
	own := &f.ports[n.first]
	f.trap(own, mad.NoticeUrgent, mad.TrapLinkStateChange, mad.TrapSwitch{LID: own.info.LID}.Details())
}

// capabilityChanged tells that the capabilities of a port have changed, or with flags what else: trap 144.
func (f *Fabric) capabilityChanged(p *port, flags uint16) {
	f.trap(p, mad.NoticeInformational, mad.TrapCapabilityMask, mad.TrapCapability{
		LID: p.info.LID, OtherLocalChanges: flags != 0, CapabilityMask: p.info.CapabilityMask, ChangeFlags: flags,
		CapabilityMask2: p.info.CapabilityMask2,
	}.Details())
}

// SetDescription gives a node another NodeDescription, which it tells by trap 144.
func (f *Fabric) SetDescription(now clock.Time, node int, text string) {
	f.traps.now = now
	n := &f.nodes[node]
	n.description = mad.DescribeNode(text)
	f.capabilityChanged(f.speaker(n), mad.ChangedNodeDescription)
}

// SetSystemImageGUID gives a node another system image GUID, which it tells by trap 145.
func (f *Fabric) SetSystemImageGUID(now clock.Time, node int, guid uint64) {
	f.traps.now = now
	n := &f.nodes[node]
	n.image = guid
	p := f.speaker(n)
	f.trap(p, mad.NoticeInformational, mad.TrapSystemImageGUID, mad.TrapSystemImage{LID: p.info.LID, SystemImageGUID: guid}.Details())
}

// speaker is the port by which a node speaks for itself: the first that has a LID.
func (f *Fabric) speaker(n *node) *port {
	ports := f.ports[n.first : int(n.first)+int(n.count)+1]
	for i := range ports {
		if ports[i].info.LID != 0 {
			return &ports[i]
		}
	}
	return &ports[min(1, len(ports)-1)]
}

// KeyViolation is a packet whose P_Key or Q_Key the receiving port found wrong.
type KeyViolation struct {
	From, To ib.LID
	Key      uint32
	SL       uint8
	FromQP   ib.QPN
	ToQP     ib.QPN
	FromGID  ib.GID // zero without a GRH
	ToGID    ib.GID
}

// BadPKey counts a packet with a P_Key that the port does not have, and tells it by trap 257.
func (f *Fabric) BadPKey(now clock.Time, at Place, v KeyViolation) {
	p := f.port(at)
	saturate(&p.info.PKeyViolations)
	f.badKey(now, p, mad.TrapBadPKey, v)
}

// BadQKey counts a packet with a Q_Key that its queue pair does not have, and tells it by trap 258.
func (f *Fabric) BadQKey(now clock.Time, at Place, v KeyViolation) {
	p := f.port(at)
	saturate(&p.info.QKeyViolations)
	f.badKey(now, p, mad.TrapBadQKey, v)
}

func (f *Fabric) badKey(now clock.Time, p *port, number uint16, v KeyViolation) {
	f.traps.now = now
	f.trap(p, mad.NoticeSecurity, number, mad.TrapKey{LID1: v.From, LID2: v.To, Key: v.Key, SL: v.SL, QP1: v.FromQP, QP2: v.ToQP,
		GID1: v.FromGID, GID2: v.ToGID}.Details())
}

func saturate(v *uint16) {
	if *v < 0xffff {
		*v++
	}
}
