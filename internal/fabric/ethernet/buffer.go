package ethernet

import (
	"github.com/softvpi/softvpi/internal/clock"
)

// alphaUnit is what a share of the free buffer is counted in.
const alphaUnit = 1 << 10

// buffer is what the ports of a switch share: all but the headroom.
type buffer struct{ size, used, peak int }

// threshold is a number of bytes, or a share of the free buffer.
type threshold struct{ bytes, alpha int32 }

func thresholdOf(bytes int, alpha float64) threshold {
	if bytes > 0 {
		return threshold{bytes: int32(bytes)}
	}
	return threshold{alpha: int32(alpha * alphaUnit)}
}

// of returns the threshold while that much is free.
func (t threshold) of(free int) int {
	if t.bytes > 0 {
		return int(t.bytes)
	}
	return free * int(t.alpha) / alphaUnit
}

// group is what frames use of the buffer that came in at a port with one priority, and how many came. A line of memory.
type group struct {
	xoff     threshold
	xon      int // by how much it must be below that
	room     int // its own, behind the threshold: headroom, and a frame
	shared   int // bytes in the shared buffer
	headroom int // bytes in its own room
	arrived  traffic
	_        [8]byte
}

// groupOf returns the group of frames of a priority.
func (p *Port) groupOf(priority uint8) uint8 {
	if p.cfg.FlowControl == GlobalPause {
		return 0
	}
	return priority
}

// admit finds room for n bytes in a group, and pauses the other end when it reaches its threshold; false: there is none.
func (p *Port) admit(now clock.Time, index uint8, n int) bool {
	b, g := &p.sw.buffer, &p.classes[index].group
	if b.used+n <= min(b.peak, b.size) && (p.pausing>>index&1 == 0 || p.roomy(index, n)) { // whatever has left meanwhile
		g.shared += n
		b.used += n
		return true
	}
	p.sw.settle(now, 0)
	fits := b.used+n <= b.size
	if p.pausing>>index&1 == 0 {
		if fits {
			p.share(g, n)
		}
		return fits
	}
	switch {
	case fits && g.shared < g.xoff.of(b.size-b.used):
		p.share(g, n)
	case g.headroom+n <= g.room:
		g.headroom += n
		c := &p.classes[index].events
		c.peakHeadroom = max(c.peakHeadroom, g.headroom)
	default:
		return false
	}
	if p.xoff>>index&1 == 0 && (g.headroom > 0 || g.shared >= g.xoff.of(b.size-b.used)) {
		p.xoff |= 1 << index
		p.sw.expect(p.number, index)
		p.ask()
		p.wake(now)
	}
	return true
}

// roomy reports whether a group is below its threshold with n bytes more.
func (p *Port) roomy(index uint8, n int) bool {
	b, g := &p.sw.buffer, &p.classes[index].group
	return g.headroom == 0 && p.xoff>>index&1 == 0 && g.shared+n < g.xoff.of(b.size-b.used-n)
}

func (p *Port) share(g *group, n int) {
	b := &p.sw.buffer
	g.shared += n
	b.used += n
	b.peak = max(b.peak, b.used)
}

// leave gives back n bytes of a group, its own room first, and lets the other end go on when it is far enough below the threshold. Nothing
// else may have left unnoticed if the other end waits for that (Switch.leave).
func (p *Port) leave(now clock.Time, index uint8, n int) {
	b, g := &p.sw.buffer, &p.classes[index].group
	own := min(g.headroom, n)
	g.headroom -= own
	g.shared -= n - own
	b.used -= n - own
	if p.xoff>>index&1 != 0 && g.headroom == 0 && g.shared <= max(g.xoff.of(b.size-b.used)-g.xon, 0) {
		p.xoff &^= 1 << index
		p.ask()
		p.wake(now)
	}
}
