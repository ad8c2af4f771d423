package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/memlink"
)

// lendingLink hands out packets whose room it has back when it is asked again, as a port of a fabric does.
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

// Nobody sleeps while a link has lent packets, whoever has driven the loop to them, a command between them or not: a port of a
// fabric whose credits are all lent gets no packets, and so would wake nobody.
func TestNoSleepOnLentPackets(t *testing.T) {
	for name, steps := range map[string][]bool{"asked": {false}, "then a command": {false, true}, "then two": {false, true, true}} {
		t.Run(name, func(t *testing.T) {
			h, cfg := newHost(t, Config{Seed: 1, NoBackground: true, Now: func() clock.Time { return 0 }}), AdapterConfig{Addr: loopback()}
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
				t.Error("the loop sleeps with packets that were lent")
			}
			for h.step() {
			}
			if _, ok := h.prepareSleep(h.now()); !ok || l.lent != 0 {
				t.Errorf("sleeps: %t with %d packets lent, want none and sleep", ok, l.lent)
			}
			h.sleep.asleep.Store(false)
			h.awake()
		})
	}
}

// wakefulLink is one that must be told of each sleep.
type wakefulLink struct {
	link.Link
	dozed, waits bool
}

func (l *wakefulLink) Capabilities() link.Capabilities {
	c := l.Link.Capabilities()
	c.Sleeper = l
	return c
}

func (l *wakefulLink) Doze() bool {
	l.dozed = true
	return !l.waits
}

// A link is told before each sleep, and nobody sleeps while it has packets that its descriptors do not show.
func TestLinksAreToldOfSleep(t *testing.T) {
	h, cfg := newHost(t, Config{Seed: 1, NoBackground: true, Now: func() clock.Time { return 0 }}), AdapterConfig{Addr: loopback()}
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
		l.dozed = false
		if _, ok := h.prepareSleep(h.now()); ok == l.waits || !l.dozed {
			t.Errorf("packets wait: %t: sleeps %t, the link was told %t", l.waits, ok, l.dozed)
		}
		h.sleep.asleep.Store(false)
		h.awake()
	}
}
