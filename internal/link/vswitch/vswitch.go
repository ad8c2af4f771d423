// Package vswitch is a virtual Ethernet switch in memory (package bridge), whose ports are links of whole Ethernet frames, each
// with queues of its own. A port obeys and sends pauses as its listener does (link.Pauses): frames of lossless priorities that nobody
// takes make those silent who send them, and are not lost. It answers for its stations' addresses and looks for their neighbours
// itself (package station). Large frames pass as they are to listeners that take them, and are cut at the port for others.
package vswitch

import (
	"math/bits"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/wire/eth"
)

// DefaultMTU is the largest IP packet in bytes that a port carries whose configuration does not say.
const DefaultMTU = 1500

// name begins the links' errors.
const name = "switch link"

// Switch is a virtual switch. Any goroutine may use it; each port belongs to one.
type Switch struct {
	began time.Time

	mu     sync.Mutex // guards what follows, and the ports' of the bridge
	bridge *bridge.Bridge
	ports  [bridge.MostPorts]*Port
}

// New returns a switch without ports. The error is a *bridge.FieldError.
func New(cfg bridge.Config) (*Switch, error) {
	b, err := bridge.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Switch{began: time.Now(), bridge: b}, nil
}

func (s *Switch) now() clock.Time { return clock.Time(time.Since(s.began)) }

// PortConfig describes a port.
type PortConfig struct {
	bridge.PortConfig // MTU 0: DefaultMTU
	// Name is what Status calls the port.
	Name string
	// Notify is called when frames have come and none were waiting, or when Errors is due: a port has no descriptors. Any
	// goroutine may call it; it must not call the link.
	Notify func()
}

// Open adds a port. The error is a *bridge.FieldError.
func (s *Switch) Open(cfg PortConfig) (*Port, error) {
	if cfg.MTU == 0 {
		cfg.MTU = DefaultMTU
	}
	if cfg.Notify == nil {
		cfg.Notify = func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	end, err := s.bridge.Add(cfg.PortConfig)
	if err != nil {
		return nil, err
	}
	p := newPort(s, cfg, end)
	s.ports[end.Number()] = p
	return p, nil
}

// forward forwards a frame that a port's stations have sent.
func (s *Switch) forward(p *Port, f *bridge.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ports[p.end.Number()] != p {
		return // it is closed
	}
	now := s.now()
	s.notify(p.end.Receive(now, f))
	p.followPauses(now)
}

// notify notifies ports, by a bit for the number of each. The caller holds the lock.
func (s *Switch) notify(woken uint64) {
	for ; woken != 0; woken &= woken - 1 {
		s.ports[bits.TrailingZeros64(woken)].cfg.Notify()
	}
}

// take hands out the frames that wait at a port.
func (s *Switch) take(p *Port, out []bridge.Frame) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	n, woken := p.end.Take(now, out)
	s.notify(woken)
	p.followPauses(now)
	return n
}

// waits reports whether frames are to be taken at a port.
func (s *Switch) waits(p *Port) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.end.Waiting(s.now()) > 0
}

// remove removes a port.
func (s *Switch) remove(p *Port) {
	s.mu.Lock()
	defer s.mu.Unlock()
	woken := p.end.Remove(s.now())
	s.ports[p.end.Number()] = nil
	s.notify(woken)
	p.pauses.Stop()
}

// Status is what a switch is and knows.
type Status struct {
	Ports []PortStatus
	Table []Entry
}

// PortStatus is a port of a switch.
type PortStatus struct {
	Name   string
	Number int // from 0
	PVID   uint16
	Tagged bridge.VLANs
	bridge.Counters
	// PausesSent and PausesReceived are MAC control frames that pause.
	PausesSent, PausesReceived uint64
}

// Entry is a source that a switch knows.
type Entry struct {
	VLAN uint16
	MAC  eth.MAC
	Port string        // its name
	Age  time.Duration // since it was heard last
}

// Status returns the ports, by number, and the sources that are known, by VLAN and MAC.
func (s *Switch) Status() (t Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.ports {
		if p != nil {
			sent, received := p.end.Pauses(s.now())
			t.Ports = append(t.Ports, PortStatus{p.cfg.Name, i, p.cfg.PVID, p.cfg.Tagged, p.end.Counters(), sent, received})
		}
	}
	for _, e := range s.bridge.Table(s.now()) {
		t.Table = append(t.Table, Entry{e.VLAN, e.MAC, s.ports[e.Port].cfg.Name, e.Age})
	}
	return t
}

// extra is what a frame has before its IP packet: an Ethernet header with a VLAN tag.
const extra = eth.EthernetLen + eth.VLANLen
