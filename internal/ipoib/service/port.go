package service

import (
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Port holds the IPoIB interfaces of one InfiniBand port.
type Port struct {
	adapter Adapter
	origin  time.Time
	random  func() uint64
	wake    chan struct{}
	done    chan struct{}
	ended   chan struct{}

	mu         sync.Mutex
	interfaces []*Interface
	joined     map[ib.GID]uint8 // JoinState of the port's memberships, as reported by the subnet administration
	next       clock.Time       // when the engines are advanced next, unless roused
	closed     bool
}

// newPort runs a port, initially without interfaces, until Close. random provides unpredictable numbers.
func newPort(a Adapter, random func() uint64) *Port {
	p := &Port{adapter: a, origin: time.Now(), random: random, wake: make(chan struct{}, 1), done: make(chan struct{}),
		ended: make(chan struct{}), joined: map[ib.GID]uint8{}}
	go p.run()
	return p
}

func (p *Port) now() clock.Time { return clock.Time(time.Since(p.origin)) }

// Close ends the port and all interfaces, which leave their groups.
func (p *Port) Close() error {
	p.mu.Lock()
	list := slices.Clone(p.interfaces)
	first := !p.closed
	p.closed = true
	p.mu.Unlock()
	for _, i := range list {
		i.Close()
	}
	if first {
		close(p.done)
	}
	<-p.ended
	return nil
}

// changed says that the adapter's port has changed.
func (p *Port) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, state := p.now(), p.adapter.Port()
	if !state.Active {
		clear(p.joined)
	}
	for _, i := range p.interfaces {
		i.engine.SetPort(now, state)
		i.drain(now)
	}
}

// answer handles a MAD of the subnet administration received on queue pair 1.
func (p *Port) answer(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(b)
	now := p.now()
	for _, i := range p.interfaces {
		i.engine.Response(now, b)
		i.drain(now)
	}
}

// note remembers the port's membership from an answer.
func (p *Port) note(b []byte) {
	m, err := mad.ParseSA(b)
	if err != nil || m.AttributeID != mad.AttrMCMemberRecord || m.Method != mad.MethodGetResp || m.Status != mad.StatusOK {
		return
	}
	if rec, err := mad.ParseMCMemberRecord(m.Data[:]); err == nil && p.groupWanted(rec.MGID, nil) {
		p.joined[rec.MGID] = rec.JoinState
	}
}

// groupWanted reports whether any interface except one needs a group.
func (p *Port) groupWanted(g ib.GID, but *Interface) bool {
	return slices.ContainsFunc(p.interfaces, func(i *Interface) bool { return i != but && i.engine.InGroup(g) })
}

// run does what is due.
func (p *Port) run() {
	defer close(p.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p.mu.Lock()
		now, next := p.now(), clock.Never
		p.next = 0 // no need to rouse it meanwhile
		for _, i := range p.interfaces {
			i.engine.Advance(now)
			i.drain(now)
			next = clock.Min(next, i.engine.Deadline())
		}
		p.next = next
		p.mu.Unlock()
		timer.Reset(min(time.Duration(next-now), time.Hour))
		select {
		case <-p.done:
			return
		case <-p.wake:
		case <-timer.C:
		}
	}
}

func (p *Port) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
