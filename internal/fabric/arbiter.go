package fabric

import "github.com/softvpi/softvpi/wire/mad"

// arbiter is a port's position in its two arbitration tables (IBA 7.6.9).
type arbiter struct {
	turn    [2]struct{ entry, left int } // low and high priority; left in units of 64 bytes
	high    int                          // bytes of high priority sent while low-priority packets waited
	serving int                          // the table chosen last
}

const (
	low  = 0
	high = 1
)

func (p *port) arbiter() *arbiter { return &p.lanes.arbiter }

// ready reports whether a lane has a packet that fits the other end's buffer, which is room bytes for each
// lane.
func (p *port) ready(vl, room int) bool {
	o := &p.lanes.out[vl]
	return o.queue.count > 0 && o.used+o.queue.first.bytes() <= room
}

// choose returns the lane whose packet is sent next, or -1 if none can be; waits reports whether one waits
// for credits.
func (p *port) choose(room int) (vl int, waits bool) {
	for i := range p.lanes.out {
		waits = waits || p.lanes.out[i].queue.count > 0
	}
	if !waits {
		return -1, false
	}
	if dataLanes(p.info.OperationalVLs) == 1 {
		if p.ready(0, room) {
			return 0, true
		}
		return -1, true
	}
	a := p.arbiter()
	first, second := p.next(high, room), p.next(low, room)
	switch {
	case first < 0 && second < 0:
		return -1, true
	case first >= 0 && (second < 0 || a.high < highLimit(p.info.VLHighLimit)):
		if second < 0 {
			a.high = 0
		}
		return p.turn(high, first), true
	}
	a.high = 0
	return p.turn(low, second), true
}

// highLimit returns how many bytes of high priority are sent before one packet of low priority may go; a
// limit of 0 means one packet.
func highLimit(limit uint8) int {
	switch limit {
	case 0:
		return 1
	case 255:
		return 1 << 62
	}
	return int(limit) * 4096
}

func (p *port) arbitration(which int) *mad.VLArbitrationTable {
	if p.tables != nil && p.tables.arbitration != nil {
		return &p.tables.arbitration[which]
	}
	return &alike[which]
}

// next returns the entry of a table whose turn it is, among those whose lane has a packet that can be
// sent; -1: there is none.
func (p *port) next(which, room int) int {
	t, turn := p.arbitration(which), &p.arbiter().turn[which]
	for i := range arbitrationCap {
		e := (turn.entry + i) % arbitrationCap
		if v := t[e]; v.Weight > 0 && int(v.VL) < lanes && p.ready(int(v.VL), room) {
			return e
		}
	}
	return -1
}

// turn gives an entry its turn and returns its lane.
func (p *port) turn(which, entry int) int {
	t, turn := p.arbitration(which), &p.arbiter().turn[which]
	if turn.entry != entry || turn.left <= 0 {
		turn.entry, turn.left = entry, int(t[entry].Weight)
	}
	p.arbiter().serving = which
	return int(t[entry].VL)
}

// sent charges a packet to the share of the entry that has its turn.
func (a *arbiter) sent(p *port, length int) {
	if dataLanes(p.info.OperationalVLs) == 1 {
		return
	}
	turn := &a.turn[a.serving]
	if turn.left -= (length + 63) / 64; turn.left <= 0 {
		turn.entry, turn.left = (turn.entry+1)%arbitrationCap, 0
	}
	if a.serving == high {
		a.high += length
	}
}
