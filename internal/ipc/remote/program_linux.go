package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/reach"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

const (
	// openTime is how long the driver may take to attach a program.
	openTime = 15 * time.Second
	// mostCopies is how many copies the driver asks for before the first is reported: the entries of a copier.
	mostCopies = 64
)

// program is one of the agent's, which is a session of its server. Commands go to the driver as they are, so that of command.Commands and
// command.Extended only those methods are there that the server calls itself.
type program struct {
	command.Commands
	extended
	a      *Agent
	number uint32
	cfg    device.ClientConfig

	opened chan error
	copies chan copyWanted
	bell   *os.File // becomes readable when the program rings a doorbell
	bells  *ring.Doorbells
	work   sync.WaitGroup
	done   chan struct{} // it has ended
	once   sync.Once

	// sending is held while what the program has posted, and its commands, are sent, so that they keep their order. Whoever reads the
	// stream does without, and mu is held by nobody who writes to it: else both sides might wait for each other.
	sending sync.Mutex
	buf     []byte
	names   []queueName

	mu       sync.Mutex
	err      error // why it has ended
	arenas   [][]byte
	cqs      map[command.Handle]*completions
	queues   map[queueName]*queue
	pairs    map[command.Handle]pair // CQs of queue pairs
	regions  map[command.Handle]region
	raises   map[command.Handle]*channel
	memories map[command.Handle]*deviceMemory
	domains  map[command.Handle]uint32 // the adapters of PDs that it has allocated
	events   *inbox
	last     uint64
	waiting  map[uint64]asked
}

// extended are the methods of command.Extended that nobody calls: their commands are handed on.
type extended struct{ command.Extended }

// completions are a CQ that the agent fills.
type completions struct {
	ring    *ring.CQ
	handle  command.Handle
	at      command.Ring
	channel command.Handle
	adapter uint32
	drops   bool       // what it has no room for
	failed  bool       // it has overflowed
	old     []*ring.CQ // before it had other sizes, as long as the program may look there
}

// asked is a request without an answer.
type asked struct {
	op   proto.Opcode
	body []byte
	reg  region
	told chan reply
}

// reply is the driver's answer to a request.
type reply struct {
	body []byte
	err  error
}

// copyWanted is a copy that the driver wants.
type copyWanted struct {
	copyingHead
	data []byte
}

func newProgram(a *Agent, cfg device.ClientConfig) *program {
	return &program{a: a, cfg: cfg, opened: make(chan error, 1), copies: make(chan copyWanted, mostCopies), done: make(chan struct{}),
		cqs: map[command.Handle]*completions{}, queues: map[queueName]*queue{}, regions: map[command.Handle]region{},
		pairs:  map[command.Handle]pair{},
		raises: map[command.Handle]*channel{}, memories: map[command.Handle]*deviceMemory{},
		domains: map[command.Handle]uint32{}, events: newInbox(), waiting: map[uint64]asked{}}
}

// open attaches the program to the driver.
func (p *program) open() error {
	fd, err := unix.FcntlInt(uintptr(p.cfg.WakeFD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return command.Errorf(command.Exhausted, "wake pipe: %v", err)
	}
	p.bell = os.NewFile(uintptr(fd), "softvpi-wake")
	if err := p.a.out.send(open, p.number, proto.Encode(opening{Name: proto.FixedName(p.cfg.Name), PID: uint32(p.cfg.PID)})); err != nil {
		return errLost
	}
	late := time.NewTimer(openTime)
	defer late.Stop()
	select {
	case err := <-p.opened:
		if err != nil {
			return err
		}
	case <-p.done:
		return p.err
	case <-late.C:
		return command.Errorf(command.TimedOut, "the driver has not answered within %v", openTime)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.arenas) == 0 {
		return fmt.Errorf("%w: no arena", errMessage)
	}
	if p.bells, err = ring.OpenDoorbells(p.arenas[0], device.Doorbells()); err != nil {
		return err
	}
	p.work.Go(p.watch)
	p.work.Go(p.copyAll)
	return nil
}

// end ends what waits for the driver. The server then closes the session.
func (p *program) end(why error) {
	p.once.Do(func() {
		p.mu.Lock()
		p.err = why
		for id, w := range p.waiting {
			w.told <- reply{err: why}
			delete(p.waiting, id)
		}
		for _, c := range p.raises {
			c.events.end(why)
		}
		p.events.end(why)
		p.mu.Unlock()
		close(p.done)
		if p.bell != nil {
			p.bell.Close()
		}
	})
}

// Close implements server.Session.
func (p *program) Close() error {
	_ = p.a.out.send(closing, p.number)
	p.end(command.Errorf(command.Canceled, "the program has ended"))
	p.a.forget(p)
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.regions {
		r.release()
	}
	for i, mem := range p.arenas {
		p.cfg.FreeArena(uint32(i), mem)
	}
	p.arenas, p.regions, p.queues, p.cqs = nil, nil, nil, nil
	return nil
}

// watch carries what the program puts into its rings, when it rings.
func (p *program) watch() {
	var handles [64]uint32
	var bytes [64]byte
	for {
		n, scan, err := p.bells.Drain(handles[:])
		p.sending.Lock()
		if err == nil && scan {
			err = p.collectAll()
		}
		for _, h := range handles[:n] {
			if err == nil {
				err = errors.Join(p.collect(queueName{command.Handle(h), sends}), p.collect(queueName{command.Handle(h), receives}))
			}
		}
		p.sending.Unlock()
		if err != nil {
			p.end(command.Errorf(command.Invalid, "%v", err))
			return
		}
		if n > 0 || scan || !p.bells.Sleep() {
			continue
		}
		_, err = p.bell.Read(bytes[:])
		p.bells.Awake()
		if err != nil {
			return // it has ended
		}
	}
}

// collectAll carries the new entries of all rings. The caller holds sending.
func (p *program) collectAll() error {
	p.mu.Lock()
	p.names = slices.AppendSeq(p.names[:0], maps.Keys(p.queues))
	p.mu.Unlock()
	for _, name := range p.names {
		if err := p.collect(name); err != nil {
			return err
		}
	}
	return nil
}

// collect carries the new entries of a ring. The caller holds sending.
func (p *program) collect(name queueName) error {
	for {
		start, n, entries, err := p.published(name)
		if err != nil || n == 0 {
			return err
		}
		p.buf = entries
		if err := p.a.out.send(posted, p.number, proto.Encode(postedHead{name.of, name.side, start, n}), entries); err != nil {
			return errLost
		}
	}
}

// published takes new entries of a ring.
func (p *program) published(name queueName) (start, n uint32, entries []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queues[name]; q != nil {
		return q.collect(p.buf[:0])
	}
	return 0, 0, nil, nil
}

// copyAll makes the copies that the driver wants, in order.
func (p *program) copyAll() {
	for {
		select {
		case <-p.done:
			return
		case c := <-p.copies:
			h := copiedHead{Index: c.Index}
			old, data, err := p.copy(&c)
			if err == nil {
				h.Reached, h.Old = 1, old
			} else {
				p.a.log.Debug("a copy that the driver wants fails", "program", p.cfg.Name, "cause", err)
			}
			if p.a.out.send(copied, p.number, proto.Encode(h), data) != nil {
				return
			}
		}
	}
}

// copy makes a copy in memory that the program has registered, and returns what was read.
func (p *program) copy(c *copyWanted) (old uint64, data []byte, err error) {
	t := memory.Transfer{Kind: memory.CopyKind(c.Kind), Last: c.Last != 0, Addr: c.Addr, Data: c.data, Compare: c.Compare, Swap: c.Swap}
	n := uint64(len(c.data))
	switch t.Kind {
	case memory.CopyRead:
		if c.Length > maxPosted {
			return 0, nil, fmt.Errorf("%w: a copy of %d bytes", errMessage, c.Length)
		}
		t.Data = make([]byte, c.Length)
		data, n = t.Data, uint64(c.Length)
	case memory.CopyCompareSwap, memory.CopyFetchAdd:
		n = 8
	}
	if n == 0 {
		return 0, nil, nil
	}
	to := p.regionOf(c.Addr, n)
	if to == nil {
		return 0, nil, fmt.Errorf("%w: %d bytes at %#x are registered by nobody", memory.ErrGone, n, c.Addr)
	}
	if old, err = to.Perform(&t); err != nil {
		return 0, nil, err
	}
	return old, data, nil
}

// regionOf returns how memory is reached; nil: the program has not registered it.
func (p *program) regionOf(addr, n uint64) reach.Performer {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.regions {
		if addr >= r.base && addr-r.base <= r.length && n <= r.length-(addr-r.base) {
			return r.to
		}
	}
	return nil
}

// Events implements command.Commands.
func (p *program) Events(ctx context.Context, out []command.Event) (int, error) {
	return p.events.take(ctx, out)
}
