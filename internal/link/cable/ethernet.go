package cable

import (
	"bytes"
	"fmt"
	"net"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	ethernetName = "cable"
	defaultMTU   = 1500
	leastMTU     = 576 // RFC 791
	// MostMTU is the largest IP packet that fits a frame of a cable.
	MostMTU = MaxFrame - eth.EthernetLen - eth.VLANLen
)

// EthernetConfig says where to plug in an Ethernet adapter. Its Hello is one of an Ethernet port.
type EthernetConfig struct {
	Config
	// MTU is the largest IP packet in bytes, 576 to MostMTU; 0: 1500.
	MTU int
	// Stations are those served from the start.
	Stations []link.Station
}

// Ethernet is the end of a cable to a fabric of Ethernet switches: a link of whole frames, with stations, for which it answers. While
// the fabric does not run its wire is down.
type Ethernet struct {
	*station.Set
	cable *Link
	caps  link.Capabilities
	timer *time.Timer
	in    [maxTaken]frame.In
	out   [1]frame.Out // of the set's frames
}

// maxTaken is how many frames are taken at once.
const maxTaken = 64

var _ link.Link = (*Ethernet)(nil)

// OpenEthernet plugs an Ethernet adapter in. If the fabric does not run, the link waits for it. The errors are those of Open, and a
// *station.FieldError.
func OpenEthernet(cfg EthernetConfig) (*Ethernet, error) {
	if cfg.MTU == 0 {
		cfg.MTU = defaultMTU
	}
	if cfg.MTU < leastMTU || cfg.MTU > MostMTU {
		return nil, &station.FieldError{Link: ethernetName, Field: "MTU", Value: cfg.MTU, Want: fmt.Sprintf("0 (%d) or %d to %d", defaultMTU,
			leastMTU, MostMTU)}
	}
	cfg.Ethernet, cfg.VCRC, cfg.Incidents = true, false, cfg.UDP != "" && cfg.Incident != nil
	if cfg.Notify == nil {
		cfg.Notify = func() {}
	}
	e := &Ethernet{}
	e.timer = time.AfterFunc(time.Hour, cfg.Notify)
	e.timer.Stop()
	e.Set = station.New(station.Config{Name: ethernetName, Wire: e.wire, MTU: cfg.MTU, Arm: func(after time.Duration) {
		if e.timer.Stop(); after >= 0 {
			e.timer.Reset(after)
		}
	}})
	e.caps = link.Capabilities{MaxSegments: 1, Raw: true, MTU: cfg.MTU, Stations: e, Multicaster: e, Resolver: e, Carrier: e, Pauses: e}
	var err error
	if e.cable, err = Open(cfg.Config); err != nil {
		return nil, err
	}
	for _, t := range cfg.Stations {
		if err := e.SetStation(t); err != nil {
			_ = e.Close()
			return nil, err
		}
	}
	return e, nil
}

// wire sends a frame of the stations': a question or an answer of neighbours.
func (e *Ethernet) wire(b []byte) {
	if e.cable == nil {
		return
	}
	e.out[0].Reset(nil)
	e.out[0].Payload = b
	_, _ = e.cable.put(e.out[:])
	e.out[0].Payload = nil
}

// Capabilities implements link.Link.
func (e *Ethernet) Capabilities() link.Capabilities { return e.caps }

// Send implements link.Link. Runs of frames that may go out are sent together. While the fabric does not run they are lost.
func (e *Ethernet) Send(frames []frame.Out) (int, error) {
	if e.Ended() {
		return 0, net.ErrClosed
	}
	for i := 0; i < len(frames); {
		n := i
		for n < len(frames) && e.Goes(&frames[n]) {
			n++
		}
		if n == i {
			if !e.Deal(&frames[i]) || !e.Goes(&frames[i]) {
				i++
			}
			continue
		}
		sent, there := e.cable.put(frames[i:n])
		for k := range sent {
			if there {
				e.Sent(&frames[i+k])
			} else {
				e.Refused(&frames[i+k], 0)
			}
		}
		if i += sent; i < n {
			e.Counted().SendBlocked++
			return i, nil
		}
	}
	return len(frames), nil
}

// put sends a prefix of frames and returns its length; false: there is no fabric that takes them.
func (l *Link) put(frames []frame.Out) (n int, there bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.session == nil {
		return len(frames), false
	}
	n, err := l.session.send(frames)
	if err != nil {
		l.fail()
		return len(frames), false
	}
	return n, true
}

// Receive implements link.Link.
func (e *Ethernet) Receive(in []frame.In) (int, error) {
	if e.Ended() {
		return 0, net.ErrClosed
	}
	n := e.Looped(in)
	got, err := e.cable.Receive(e.in[:min(len(in)-n, len(e.in))])
	for i := range e.in[:got] {
		n += e.Take(in[n:], e.in[i].Data, offload.Task{}, true)
	}
	return n, err
}

// Errors implements link.Link.
func (e *Ethernet) Errors(out []link.Unreachable) int {
	if e.Ended() {
		return 0
	}
	e.Tend(false)
	return e.Set.Errors(out)
}

// Descriptors implements link.Link.
func (e *Ethernet) Descriptors() []int { return e.cable.Descriptors() }

// Stats implements link.Link. Frames that were damaged and, over UDP, lost parts of the stream count as truncated.
func (e *Ethernet) Stats() link.Stats {
	s := e.Set.Stats()
	s.ReceiveTruncated += e.cable.Stats().ReceiveTruncated
	return s
}

// WireState implements link.Carrier: the wire is there while the fabric runs and its link is up.
func (e *Ethernet) WireState() link.State { return e.cable.state.Load().Wire }

// SetPauses implements link.Pauses. The fabric knows the rate of the link.
func (e *Ethernet) SetPauses(obeys, asks pause.Scope, _ uint64) {
	m, l := pausesMessage(obeys, asks), e.cable
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Equal(m, l.pauses) {
		return
	}
	l.pauses = m
	if l.session != nil && !l.closed {
		l.session.tell(m)
	}
}

// SetPlugged pulls the cable out or plugs it in again, as when an adapter is disabled and enabled.
func (e *Ethernet) SetPlugged(in bool) { e.cable.SetPlugged(in) }

// Close implements link.Link: it pulls the cable out.
func (e *Ethernet) Close() error {
	if !e.End() {
		return nil
	}
	e.timer.Stop()
	return e.cable.Close()
}
