package fabric

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// enqueue puts a packet into its lane towards a port's link.
func (f *Fabric) enqueue(now clock.Time, p *port, q *Parcel) {
	o := &p.data().out[q.vl]
	if now.Before(o.stalled) {
		f.discard(now, p, q, ctrHOQDiscards)
		return
	}
	o.queue.add(q)
	if o.queue.count == 1 {
		f.watchHead(now, p, q.vl)
	}
	f.transmit(now, p)
}

// discard drops a packet that a port should have sent.
func (f *Fabric) discard(now clock.Time, p *port, q *Parcel, why counter) {
	p.count(ctrXmitDiscards, 1)
	p.count(why, 1)
	f.release(now, q)
}

// release frees a packet and returns the buffer space that it occupied to the sender.
func (f *Fabric) release(now clock.Time, q *Parcel) {
	f.free(now, q)
	f.data.give(q)
}

// free returns the space of a packet in the buffer of the port where it arrived.
func (f *Fabric) free(now clock.Time, q *Parcel) {
	if q.held.shared != nil {
		if *q.held.shared--; *q.held.shared > 0 {
			return
		}
	}
	if q.held.port == noPort {
		return
	}
	in := &f.ports[q.held.port]
	q.held.port = noPort
	if in.lanes.epoch != q.held.epoch {
		return // the link has been down since, which has freed all space
	}
	up := &f.ports[in.peer]
	f.after(linkLatency, now, event{kind: credit, port: in.peer, epoch: up.data().epoch, vl: q.lane(), bytes: int32(q.bytes())})
}

// lane returns the virtual lane on which the packet arrived, which is in its LRH until it is forwarded.
func (p *Parcel) lane() uint8 { return p.lrh().VL() }

// transmit sends the port's next packets while its link is free and one fits the other end's buffer.
func (f *Fabric) transmit(now clock.Time, p *port) {
	l := p.data()
	for !l.sending && p.up() {
		vl, waits := p.choose(f.room())
		if vl < 0 {
			if waits && l.blocked == 0 {
				l.blocked = now
			}
			return
		}
		p.unblocked(now)
		o := &l.out[vl]
		q := o.queue.remove()
		f.roomier(p, &l.wants, o.queue.count)
		o.drops = 0
		if o.queue.count > 0 {
			f.watchHead(now, p, uint8(vl))
		}
		if sw := f.nodes[p.node].sw; sw != nil && sw.info.LifeTimeValue <= 19 &&
			now.Sub(q.since) > 4096*time.Nanosecond<<sw.info.LifeTimeValue {
			f.discard(now, p, q, ctrLifetimeDiscards)
			continue
		}
		p.arbiter().sent(p, q.length)
		o.used += q.bytes()
		p.sentData(q)
		f.free(now, q)
		q.lrh().SetVL(q.vl)
		arrival := event{kind: arrives, port: p.peer, epoch: f.ports[p.peer].data().epoch, parcel: q}
		if f.data.untimed {
			f.data.soon.push(&arrival)
			continue
		}
		l.sending = true
		took := f.wireTime(p, q.length)
		f.after(took, now, event{kind: sent, port: f.index(p), epoch: l.epoch})
		f.after(took+linkLatency, now, arrival)
	}
}

// unblocked counts the time that packets waited for credits. The tick of PortXmitWait, which is up to the
// device, is a nanosecond here.
func (p *port) unblocked(now clock.Time) {
	l := p.lanes
	if l.blocked != 0 {
		waited := uint64(now.Sub(l.blocked) / time.Nanosecond)
		p.count(ctrXmitWait, waited)
		for vl := range l.out {
			if l.out[vl].queue.count > 0 {
				p.flows().waitVL[vl] += waited
			}
		}
		l.blocked = 0
	}
}

// watchHead ensures that a packet that has reached the head of its lane does not stay there for longer
// than HOQLife, at switches (IBA 18.2.5.4). There is one event per lane, which checks again if there has
// been another packet meanwhile.
func (f *Fabric) watchHead(now clock.Time, p *port, vl uint8) {
	o := &p.lanes.out[vl]
	o.first = now
	if o.watched || p.info.HOQLife > 19 || f.nodes[p.node].kind != mad.NodeSwitch {
		return
	}
	o.watched = true
	f.later(event{at: now.Add(p.headLife()), kind: old, port: f.index(p), epoch: p.lanes.epoch, vl: vl})
}

// headLife returns how long a packet may be at the head of its lane.
func (p *port) headLife() time.Duration { return 4096 * time.Nanosecond << min(p.info.HOQLife, 31) }

// expireHead drops a packet that has been at the head of its lane for too long. After VLStallCount
// consecutive drops the lane is stalled: for eight times as long it drops everything.
func (f *Fabric) expireHead(now clock.Time, p *port, vl uint8) {
	o := &p.lanes.out[vl]
	o.watched = false
	if o.queue.count == 0 || p.info.HOQLife > 19 {
		return
	}
	if end := o.first.Add(p.headLife()); now.Before(end) {
		o.watched = true
		f.later(event{at: end, kind: old, port: f.index(p), epoch: p.lanes.epoch, vl: vl})
		return
	}
	drop := 1
	if o.drops++; p.info.VLStallCount != 0 && o.drops >= int(p.info.VLStallCount) {
		o.drops = 0
		o.stalled = now.Add(8 * p.headLife())
		drop = o.queue.count
	}
	for range drop {
		f.discard(now, p, o.queue.remove(), ctrHOQDiscards)
	}
	if o.queue.count > 0 {
		f.watchHead(now, p, vl)
	}
	f.transmit(now, p)
}

// arrive handles a packet that arrives at a port.
func (f *Fabric) arrive(now clock.Time, p *port, q *Parcel) {
	q.held = hold{port: f.index(p), epoch: p.lanes.epoch}
	q.since = now
	if f.loss.on && f.lost(&f.ports[p.peer]) { // it arrived with a wrong CRC
		p.gotDamaged()
		f.release(now, q)
		return
	}
	p.gotData(q)
	switch {
	case p.info.PortState < mad.PortArmed:
		f.release(now, q)
		return
	case p.info.PortState == mad.PortArmed: // the other end is active (IBA 7.2.7)
		p.info.PortState = mad.PortActive
		f.touch(p)
	}
	n := &f.nodes[p.node]
	if n.kind == mad.NodeSwitch {
		f.relay(now, n, p, q)
		return
	}
	if lid := q.lrh().DLID(); !multicast(lid) && (lid == ib.LIDPermissive || !p.matches(lid)) {
		p.count(ctrRcvErrors, 1)
		f.release(now, q)
		return
	}
	f.deliver(now, p, q)
}

// deliver leaves a packet for the program at the port, unless it is a management datagram that somebody
// else takes.
func (f *Fabric) deliver(now clock.Time, p *port, q *Parcel) {
	if q.general() && f.manage(now, p, q) {
		return
	}
	if l := p.data(); l.plugged {
		l.arrived.add(q)
		f.tell(p)
		return
	}
	f.release(now, q)
}

func multicast(lid ib.LID) bool { return lid >= ib.LIDFirstMulticast && lid != ib.LIDPermissive }

// cutLanes loses all packets that are on, or wait for, a link that goes down.
func (f *Fabric) cutLanes(p *port) {
	l := p.lanes
	if l == nil {
		return
	}
	l.epoch++
	l.sending, l.blocked, l.arbiter = false, 0, arbiter{}
	for vl := range l.out {
		o := &l.out[vl]
		queue := o.queue
		*o = laneOut{}
		for queue.count > 0 {
			f.discard(f.traps.now, p, queue.remove(), ctrInactiveDiscards)
		}
	}
}
