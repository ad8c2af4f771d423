package rack

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/link/cable"
	"golang.org/x/sys/unix"
)

const (
	// turnFrames is how many frames an outlet may carry in each direction before others have their turn.
	turnFrames = 64
	// spin is for how long the pump looks for more after the last frame before it sleeps: to be woken takes longer.
	spin = 50 * time.Microsecond
	// retry is when an outlet whose frame the fabric did not take is looked at again, where nothing tells of room.
	retry = time.Millisecond
)

// pump carries frames between the rings of outlets and the fabric. One goroutine does it for all of them, in turns.
type pump struct {
	rack  *Rack
	epoll int
	wake  int // an eventfd

	mu     sync.Mutex
	joined []*outlet
	left   []*outlet
	told   []*outlet // with news of their ports
	ended  bool
	sleeps bool // it waits, or is about to

	// What follows is the goroutine's.
	next  int32 // key of the next outlet
	keys  map[int32]*outlet
	turns []*outlet // those that may have something to do
}

func newPump(r *Rack) (*pump, error) {
	p := &pump{rack: r, keys: map[int32]*outlet{}}
	var err error
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("cables: %w", err)
	}
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		err = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, p.wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1})
	}
	if err != nil {
		unix.Close(p.epoll)
		return nil, fmt.Errorf("cables: %w", err)
	}
	return p, nil
}

// rouse wakes the pump. It is locked.
func (p *pump) rouse() {
	if p.sleeps {
		p.sleeps = false
		_, _ = unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (p *pump) add(o *outlet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.joined = append(p.joined, o)
	p.rouse()
}

// remove lets go of an outlet, which is told by its channel gone.
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

// news is told with the rack locked.
func (p *pump) news(o *outlet) {
	select {
	case o.changed <- struct{}{}:
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !o.told {
		o.told = true
		p.told = append(p.told, o)
		p.rouse()
	}
}

// run works until stop, and until all outlets have left.
func (p *pump) run() {
	defer unix.Close(p.epoll)
	defer unix.Close(p.wake)
	var events [64]unix.EpollEvent
	last := p.rack.Now()
	for p.gather() {
		if p.round() {
			last = p.rack.Now()
			continue
		}
		if len(p.turns) > 0 && p.rack.Now().Sub(last) < spin {
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			continue
		}
		wait, ok := p.rest()
		if !ok {
			continue
		}
		n, _ := unix.EpollWait(p.epoll, events[:], wait)
		p.rise(events[:max(n, 0)])
	}
}

// gather does what others asked for; false: the pump has ended.
func (p *pump) gather() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.joined {
		p.next++
		p.keys[p.next] = o
		o.key = p.next
		_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, o.bell, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: p.next})
		p.ready(o)
	}
	for _, o := range p.told {
		o.told = false
		p.ready(o)
	}
	for _, o := range p.left {
		if p.keys[o.key] == o {
			delete(p.keys, o.key)
			_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, o.bell, nil)
			p.turns = slices.DeleteFunc(p.turns, func(t *outlet) bool { return t == o })
		}
		close(o.gone)
	}
	clear(p.joined)
	clear(p.told)
	clear(p.left)
	p.joined, p.told, p.left = p.joined[:0], p.told[:0], p.left[:0]
	return !p.ended || len(p.keys) > 0
}

func (p *pump) ready(o *outlet) {
	if !o.ready && p.keys[o.key] == o {
		o.ready = true
		p.turns = append(p.turns, o)
	}
}

// round gives each outlet that is ready its turn; some: there was something to do.
func (p *pump) round() (some bool) {
	if len(p.turns) == 0 {
		return false
	}
	now, f := p.rack.Lock()
	for _, o := range p.turns {
		if o.turn(now, f) {
			some = true
		}
	}
	p.rack.Unlock()
	for _, o := range p.turns {
		if o.ring {
			o.ring = false
			cable.Ring(o.bell)
		}
	}
	return some
}

// rest sends the outlets that have nothing to do to sleep; false: one has. wait is in milliseconds.
func (p *pump) rest() (wait int, ok bool) {
	wait = -1
	p.turns = slices.DeleteFunc(p.turns, func(o *outlet) bool {
		switch {
		case o.blocked:
			wait = int(retry / time.Millisecond)
			return false
		case !o.sleep():
			return false
		}
		o.ready = false
		return true
	})
	for _, o := range p.turns {
		if !o.blocked {
			return 0, false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.joined)+len(p.told)+len(p.left) > 0 || p.ended && len(p.keys) == 0 {
		return 0, false
	}
	p.sleeps = true
	return wait, true
}

// rise takes what woke the pump.
func (p *pump) rise(events []unix.EpollEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sleeps = false
	for _, e := range events {
		if e.Fd < 0 {
			var b [8]byte
			_, _ = unix.Read(p.wake, b[:])
			continue
		}
		if o := p.keys[e.Fd]; o != nil {
			cable.Quiet(o.bell)
			p.ready(o)
		}
	}
}
