package service

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/tun"
)

// backing is who sends what the system sends: an interface, or a team.
type backing interface {
	take(h offload.Header, packet []byte)
	idle()
	// Set sets the addresses, and the routes to other links.
	Set(prefixes []netip.Prefix, routes []ipoib.Route)
}

// Front is a network interface of the system, which stands before one interface after the other, or a team. What the system sends goes
// there, and settings made with ip(8) take effect there.
type Front struct {
	*tun.Device
	behind atomic.Pointer[behind]
	mu     sync.Mutex // held while settings are applied, and to change behind
	taken  backing    // of the reading goroutine: who has taken packets since it was idle
	news   chan struct{}
	done   chan struct{}
	ended  chan struct{}
}

// behind is who is behind a network interface.
type behind struct {
	backing
	own     []netip.Prefix
	changed func([]netip.Prefix)
}

// NewFront begins to serve a network interface, which is the Front's from now on.
func NewFront(d *tun.Device) (*Front, error) {
	f := &Front{Device: d, news: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
	if err := d.Watch(f.look); err != nil {
		return nil, err
	}
	go d.Each(f.take, f.idle)
	go f.run()
	return f, nil
}

// Stand puts an interface or a team behind the network interface, in place of what was there; it must have been made with the
// Front's Device as its System. own are additional addresses. changed, if any, is called with all addresses after every change, and
// soon.
func (f *Front) Stand(b backing, own []netip.Prefix, changed func([]netip.Prefix)) {
	f.mu.Lock()
	f.behind.Store(&behind{b, own, changed})
	f.mu.Unlock()
	f.look()
}

// Leave leaves nobody behind the network interface: what the system sends is lost. Who was there is told of nothing any more.
func (f *Front) Leave() {
	f.mu.Lock()
	f.behind.Store(nil)
	f.mu.Unlock()
	_ = f.SetCarrier(false)
}

func (f *Front) look() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// run applies settings when they have changed, or who is to have them.
func (f *Front) run() {
	defer close(f.ended)
	for {
		select {
		case <-f.done:
			return
		case <-f.news:
		}
		if s, err := f.Settings(); err == nil { // otherwise it is gone
			f.apply(&s)
		}
	}
}

func (f *Front) apply(s *tun.Settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.behind.Load()
	if b == nil {
		return
	}
	all := slices.Clone(b.own)
	for _, p := range s.Prefixes {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	routes := make([]ipoib.Route, len(s.Routes))
	for n, r := range s.Routes {
		routes[n] = ipoib.Route(r)
	}
	b.Set(all, routes)
	if b.changed != nil {
		b.changed(all)
	}
}

func (f *Front) take(h offload.Header, packet []byte) {
	b := f.behind.Load()
	if b == nil {
		return
	}
	if f.taken != nil && f.taken != b.backing {
		f.taken.idle()
	}
	f.taken = b.backing
	f.taken.take(h, packet)
}

func (f *Front) idle() {
	if f.taken != nil {
		f.taken.idle()
		f.taken = nil
	}
}

// Close removes the network interface. It waits until nobody is told of changes any more.
func (f *Front) Close() error {
	close(f.done)
	err := f.Device.Close()
	<-f.ended
	return err
}
