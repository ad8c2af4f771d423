package fabric

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// trapKey identifies equal traps: the sender, the trap number and the port it is about.
type trapKey struct {
	port   int32
	number uint16
	about  uint8
}

// told is a trap that is sent until the subnet manager represses it, and then kept for as long as the next
// of its kind has to wait.
type told struct {
	trapKey
	kind      uint8
	repressed bool
	again     bool // it happened again since it was sent
	details   mad.Details
	tid       uint64
	due       clock.Time // when it is sent next, or may be
}

// trapQueue holds all traps of a fabric. There is at most one per trapKey, however often it happens.
type trapQueue struct {
	now  clock.Time // the latest time passed in
	all  []told
	at   map[trapKey]int
	next uint64 // next transaction ID
}

// trap reports something at the port, which has the node's LID, to the subnet manager. A port that knows
// no subnet manager reports nothing (IBA 14.3.1).
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

// repressed ends a trap that a subnet manager has acknowledged (IBA 14.3.9).
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

// Trap sends the next trap that is due, in p. The outcome says where it arrived; false: none is due. Each
// is repeated, at most once per SubnetTimeOut of the port, until it is repressed.
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

// notice builds the packet of a trap.
func (f *Fabric) notice(own *port, t *told, p *Packet) {
	s := mad.NewSMP(mad.MethodTrap, mad.AttrNotice, 0, t.tid)
	n := mad.Notice{IsGeneric: true, Type: t.kind, ProducerType: uint32(f.nodes[own.node].kind), TrapNumber: t.number,
		IssuerLID: own.info.LID, DataDetails: t.details}
	n.Append(s.Data[:0])
	*p = Packet{SLID: own.info.LID, DLID: own.info.MasterSMLID, SL: own.info.MasterSMSL}
	s.Append(p.MAD[:0])
}

// TrapDeadline returns when Trap must be called next.
func (f *Fabric) TrapDeadline() clock.Time {
	at := clock.Never
	for i := range f.traps.all {
		at = clock.Min(at, f.traps.all[i].due)
	}
	return at
}

func (f *Fabric) index(p *port) int32 { return f.nodes[p.node].first + int32(p.number) }

// portStateChanged reports that a switch port went up or down: trap 128.
func (f *Fabric) portStateChanged(n *node) {
	own := &f.ports[n.first]
	f.trap(own, mad.NoticeUrgent, mad.TrapLinkStateChange, mad.TrapSwitch{LID: own.info.LID}.Details())
}

// capabilityChanged reports that a port's capabilities, or what flags says, have changed: trap 144.
func (f *Fabric) capabilityChanged(p *port, flags uint16) {
	f.trap(p, mad.NoticeInformational, mad.TrapCapabilityMask, mad.TrapCapability{
		LID: p.info.LID, OtherLocalChanges: flags != 0, CapabilityMask: p.info.CapabilityMask, ChangeFlags: flags,
		CapabilityMask2: p.info.CapabilityMask2,
	}.Details())
}

// SetDescription changes a node's NodeDescription, which it reports by trap 144.
func (f *Fabric) SetDescription(now clock.Time, node int, text string) {
	f.traps.now = now
	n := &f.nodes[node]
	n.description = mad.DescribeNode(text)
	f.capabilityChanged(f.speaker(n), mad.ChangedNodeDescription)
}

// SetSystemImageGUID changes a node's system image GUID, which it reports by trap 145.
func (f *Fabric) SetSystemImageGUID(now clock.Time, node int, guid uint64) {
	f.traps.now = now
	n := &f.nodes[node]
	n.image = guid
	p := f.speaker(n)
	f.trap(p, mad.NoticeInformational, mad.TrapSystemImageGUID, mad.TrapSystemImage{LID: p.info.LID, SystemImageGUID: guid}.Details())
}

// speaker returns the port that a node uses for its own traps: the first that has a LID.
func (f *Fabric) speaker(n *node) *port {
	ports := f.ports[n.first : int(n.first)+int(n.count)+1]
	for i := range ports {
		if ports[i].info.LID != 0 {
			return &ports[i]
		}
	}
	return &ports[min(1, len(ports)-1)]
}

// KeyViolation describes a packet whose P_Key or Q_Key the receiving port found wrong.
type KeyViolation struct {
	From, To ib.LID
	Key      uint32
	SL       uint8
	FromQP   ib.QPN
	ToQP     ib.QPN
	FromGID  ib.GID // zero if there is no GRH
	ToGID    ib.GID
}

// BadPKey counts a packet with a P_Key that the port does not have, and reports it by trap 257.
func (f *Fabric) BadPKey(now clock.Time, at Place, v KeyViolation) {
	p := f.port(at)
	saturate(&p.info.PKeyViolations)
	f.badKey(now, p, mad.TrapBadPKey, v)
}

// BadQKey counts a packet with a wrong Q_Key for its queue pair, and reports it by trap 258.
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
