package device

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/memlink"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// lendingLink hands out packets whose buffers it gets back at the next Receive, as a port of a fabric does.
type lendingLink struct {
	link.Link
	has, lent int
}

func (l *lendingLink) Receive(in []frame.In) (int, error) {
	l.lent = min(l.has, len(in))
	l.has -= l.lent
	for i := range in[:l.lent] {
		in[i] = frame.In{Data: make([]byte, 64)}
	}
	return l.lent, nil
}

// TestNoSleepOnLentPackets: the loop does not sleep while a link has lent packets to it, however the loop was driven
// and whether commands came in between: a port of a fabric whose credits are all lent gets no packets and would wake
// nobody.
func TestNoSleepOnLentPackets(t *testing.T) {
	for name, steps := range map[string][]bool{"asked": {false}, "then a command": {false, true}, "then two": {false, true, true}} {
		t.Run(name, func(t *testing.T) {
			h, cfg := newHost(t, Config{Seed: 1, NoBackground: true, Now: func() clock.Time { return 0 }}),
				AdapterConfig{Addr: loopback.Addr()}
			p, err := memlink.NewSwitch().Port(memlink.PortConfig{Addr: cfg.Addr})
			if err != nil {
				t.Fatal(err)
			}
			l := &lendingLink{Link: p}
			cfg.Link = l
			h.add(t, cfg)
			h.lock()
			defer h.unlock()
			for h.step() {
			}
			l.has = 3
			for _, h.commanded = range steps {
				h.step()
			}
			h.commanded = false
			if l.lent != 3 {
				t.Fatalf("the link has lent %d packets, want 3", l.lent)
			}
			if _, ok := h.prepareSleep(h.now()); ok {
				t.Error("the loop may sleep while packets are lent to it")
			}
			for h.step() {
			}
			if _, ok := h.prepareSleep(h.now()); !ok || l.lent != 0 {
				t.Errorf("may sleep: %t with %d packets lent; want true with none", ok, l.lent)
			}
			h.sleep.asleep.Store(false)
			h.awake()
		})
	}
}

// wakefulLink is a link that must be told of each sleep and may have packets that its descriptors do not show.
type wakefulLink struct {
	link.Link
	armed, waits bool
}

func (l *wakefulLink) Capabilities() link.Capabilities {
	c := l.Link.Capabilities()
	c.Sleeper = l
	return c
}

func (l *wakefulLink) ArmWakeUp() bool {
	l.armed = true
	return !l.waits
}

// TestLinksAreToldOfSleep: a link is told before each sleep, and the loop does not sleep while it has packets that
// its descriptors do not show.
func TestLinksAreToldOfSleep(t *testing.T) {
	h, cfg := newHost(t, Config{Seed: 1, NoBackground: true, Now: func() clock.Time { return 0 }}), AdapterConfig{Addr: loopback.Addr()}
	p, err := memlink.NewSwitch().Port(memlink.PortConfig{Addr: cfg.Addr})
	if err != nil {
		t.Fatal(err)
	}
	l := &wakefulLink{Link: p}
	cfg.Link = l
	h.add(t, cfg)
	h.lock()
	defer h.unlock()
	for _, l.waits = range []bool{false, true, false} {
		for h.step() {
		}
		l.armed = false
		if _, ok := h.prepareSleep(h.now()); ok == l.waits || !l.armed {
			t.Errorf("packets wait %t: may sleep %t, the link was told %t; want the former only without packets, the latter always",
				l.waits, ok, l.armed)
		}
		h.sleep.asleep.Store(false)
		h.awake()
	}
}

// lookedAt is a link that shows what arrives to who sleeps on it only until somebody looks at it.
type lookedAt struct {
	link.Link
	armed atomic.Int32 // how often it was told of a sleep since somebody looked
}

func (l *lookedAt) Capabilities() link.Capabilities {
	c := l.Link.Capabilities()
	c.Sleeper = l
	return c
}

func (l *lookedAt) ArmWakeUp() bool {
	l.armed.Add(1)
	return true
}

func (l *lookedAt) Receive(in []frame.In) (int, error) {
	l.armed.Store(0)
	return l.Link.Receive(in)
}

// TestSleepersAreArmedAgain: when a program has polled beside who sleeps on the links, the background goroutine or a program that
// waits for events, and polls no more, the links are told of a sleep again: short packets that arrive wake somebody.
func TestSleepersAreArmedAgain(t *testing.T) {
	for _, waits := range []bool{false, true} {
		t.Run(fmt.Sprintf("a program waits %t", waits), func(t *testing.T) {
			h, cfg := newHost(t, Config{Seed: 1}), AdapterConfig{Addr: loopback.Addr()}
			p, err := memlink.NewSwitch().Port(memlink.PortConfig{Addr: cfg.Addr, Notify: h.Wake})
			if err != nil {
				t.Fatal(err)
			}
			l := &lookedAt{Link: p}
			cfg.Link = l
			a := newProgram(t, h, h.add(t, cfg))
			asleep := func() bool { return l.armed.Load() > 0 && h.sleep.asleep.Load() }
			if waits {
				ctx, cancel := context.WithCancel(t.Context())
				q, ended := a.cq(4), make(chan error)
				go func() {
					_, err := a.c.SleepCQ(ctx, q.q.Handle, q.Sequence())
					ended <- err
				}()
				defer func() {
					cancel()
					var e *command.Error
					if err := <-ended; !errors.As(err, &e) || e.Code != command.Canceled {
						t.Errorf("the wait ended with %v, want its context's end", err)
					}
				}()
				await.Eventually(t, "the waiter owns the links", func() bool { return h.sleep.roles.Waiters() == 1 && asleep() })
			}
			for range 3 {
				await.Eventually(t, "somebody sleeps on the links", asleep)
				looked := func() bool { a.c.Poll(0); return l.armed.Load() == 0 }
				await.Eventually(t, "a poll looks at the links", looked)
				await.Eventually(t, "the links are told of a sleep again", asleep)
			}
		})
	}
}
