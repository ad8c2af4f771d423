package live

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/wait"
)

const (
	// turnFrames is how many frames an outlet may transfer in each direction before others have their
	// turn.
	turnFrames = 64
	// lookAbout is after how many busy rounds the pump checks the bells of sleeping outlets.
	lookAbout = 16
	// retry is the interval at which an outlet is tried again that the system, or the fabric, had no room
	// for. The fabric tells when it has room, but trying costs little, and a frame that waits forever
	// would end a connection.
	retry = time.Millisecond
)

// outlet is the fabric's end of a cable to an adapter in another process.
type outlet struct {
	end
	port inlet
	told bool // it is in pump.told

	// Only the pump uses the following fields.
	key     int32
	ready   bool // it has a turn in the next round
	blocked bool // the fabric refuses its next frame, and will tell when it has room
	broken  bool // it broke the rules, or has left
	gone    chan struct{}
}

// end is how frames reach an outlet and leave it.
type end interface {
	// turn transfers frames in both directions, only so many that others have their turn; some: there were
	// any. The rack is locked.
	turn(now clock.Time) (some bool)
	// finish does what turn has left for when the rack is unlocked; false: it could not do everything.
	finish(now clock.Time) bool
	// sleep asks the other side to ring the bell for the next frame; false: there are frames already.
	sleep() bool
	// bell becomes readable when the other side has rung; -1: it rings in other ways.
	bell() int
}

// pump transfers frames between outlets and the fabric. One goroutine serves all of them in turns.
type pump struct {
	rack    *Rack
	waiter  waiter
	remotes *remotes // nil: there are no cables over UDP

	mu     sync.Mutex
	joined []*outlet
	left   []*outlet
	told   []*outlet // outlets with news of their ports
	ended  bool
	sleeps bool // it waits, or is about to

	// Only the goroutine uses the following fields.
	next   int32 // key of the next outlet
	keys   map[int32]*outlet
	turns  []*outlet // outlets that may have something to do
	stuck  bool      // the system had no room for what an outlet wanted to send
	ending bool      // copy of ended, taken by gather
}

func newPump(r *Rack) (*pump, error) {
	p := &pump{rack: r, keys: map[int32]*outlet{}}
	return p, p.waiter.open()
}

// rouse wakes the pump. The caller holds the pump's lock.
func (p *pump) rouse() {
	if p.sleeps {
		p.sleeps = false
		p.waiter.wake()
	}
}

func (p *pump) add(o *outlet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.joined = append(p.joined, o)
	p.rouse()
}

// remove drops an outlet and then closes its channel gone.
func (p *pump) remove(o *outlet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = append(p.left, o)
	p.rouse()
}

func (p *pump) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.rouse()
}

// arrived says that something has arrived that no descriptor shows.
func (p *pump) arrived() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rouse()
}

// news is called with the rack locked.
func (p *pump) news(o *outlet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !o.told {
		o.told = true
		p.told = append(p.told, o)
		p.rouse()
	}
}

// run runs until stop, and until all outlets have left.
func (p *pump) run() {
	defer p.waiter.close()
	spin, rounds := wait.Spinner{Policy: wait.Of(wait.Cables)}, 0
	spin.Begin(p.rack.Now())
	for p.gather() {
		came := p.remotes.receive(p.ending)
		if p.round() || came {
			spin.Begin(p.rack.Now())
			if rounds++; rounds%lookAbout == 0 {
				p.waiter.wait(0, p.rise)
				p.risen()
			}
			continue
		}
		if len(p.turns) > 0 && spin.Again(p.rack.Now, false) {
			continue
		}
		if d, ok := p.rest(); ok {
			p.waiter.wait(d, p.rise)
			p.risen()
		}
	}
}

// gather handles what others asked for; false: the pump has ended.
func (p *pump) gather() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.joined {
		p.next++
		p.keys[p.next] = o
		o.key = p.next
		p.waiter.add(o.bell(), o.key)
		p.ready(o)
	}
	for _, o := range p.told {
		o.told = false
		o.blocked = false
		p.ready(o)
	}
	for _, o := range p.left {
		if p.keys[o.key] == o {
			delete(p.keys, o.key)
			p.waiter.remove(o.bell())
			p.turns = slices.DeleteFunc(p.turns, func(t *outlet) bool { return t == o })
		}
		close(o.gone)
	}
	clear(p.joined)
	clear(p.told)
	clear(p.left)
	p.joined, p.told, p.left = p.joined[:0], p.told[:0], p.left[:0]
	p.ending = p.ended
	return !p.ended || len(p.keys) > 0
}

func (p *pump) ready(o *outlet) {
	if !o.ready && p.keys[o.key] == o {
		o.ready = true
		p.turns = append(p.turns, o)
	}
}

// round gives each ready outlet a turn; some: there was something to do.
func (p *pump) round() (some bool) {
	if len(p.turns) == 0 {
		return false
	}
	now, _ := p.rack.Lock()
	for _, o := range p.turns {
		o.blocked = false
		if !o.broken && !o.port.ended() && o.turn(now) {
			some = true
		}
	}
	p.rack.Unlock()
	p.stuck = false
	for _, o := range p.turns {
		if !o.finish(now) {
			p.stuck = true
		}
	}
	return some
}

// rest puts outlets without work to sleep; false: one has work. pause is how long the pump may sleep,
// negative: forever.
func (p *pump) rest() (pause time.Duration, ok bool) {
	pause = -1
	p.turns = slices.DeleteFunc(p.turns, func(o *outlet) bool {
		if !o.broken && !o.blocked && !o.sleep() {
			return false
		}
		o.ready = false
		return true
	})
	if len(p.turns) > 0 {
		return 0, false
	}
	if p.stuck || p.waits() {
		pause = retry
	}
	if due := p.remotes.deadline(); due != clock.Never {
		if d := max(0, due.Sub(p.rack.Now())); pause < 0 || d < pause {
			pause = d
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.joined)+len(p.told)+len(p.left) > 0 || p.ended && len(p.keys) == 0 {
		return 0, false
	}
	p.sleeps = true
	return pause, true
}

// rise handles a bell that has rung.
func (p *pump) rise(key int32) {
	if o := p.keys[key]; o != nil {
		p.ready(o)
	}
}

// risen notes that the pump is awake, and retries the outlets for which there was no room.
func (p *pump) risen() {
	p.mu.Lock()
	p.sleeps = false
	p.mu.Unlock()
	for _, o := range p.keys {
		if p.stuck || o.blocked {
			p.ready(o)
		}
	}
}

// waits reports whether an outlet waits for room in the fabric.
func (p *pump) waits() bool {
	for _, o := range p.keys {
		if o.blocked && !o.broken {
			return true
		}
	}
	return false
}

// socketKey is the key of the UDP socket, which belongs to no outlet.
const socketKey = math.MaxInt32
