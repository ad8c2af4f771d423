package live

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/lan"
	"github.com/softvpi/softvpi/internal/link/cable"
)

// near is what is due so soon that it is waited for: events of links without timing follow each other at once.
const near = 2 * time.Microsecond

// errNoEthernet refuses Ethernet adapters.
var errNoEthernet = errors.New("the fabric has no Ethernet nodes")

// jack is a host of the Ethernet where an adapter is plugged in.
type jack struct {
	*lan.Jack
	rack    *Rack
	notify  func()
	changes atomic.Uint64
}

// plugEthernet plugs an adapter in at a host, the first that is free if node is empty.
func (r *Rack) plugEthernet(node, program string, notify func()) (inlet, error) {
	now, _ := r.Lock()
	defer r.Unlock()
	switch {
	case r.closed:
		return nil, errClosed
	case r.lan == nil:
		return nil, errNoEthernet
	}
	p, err := r.lan.Plug(now, node, program)
	if errors.Is(err, lan.ErrTaken) {
		return nil, fmt.Errorf("%w%w", err, quiet{errTaken})
	}
	if err != nil {
		return nil, err
	}
	j := &jack{Jack: p, rack: r, notify: notify}
	j.changes.Store(p.Changes())
	r.jacks[p] = j
	return j, nil
}

// Command executes a command for the Ethernet; mine is false if it is not for it, or there is none. The caller holds the lock.
func (r *Rack) Command(words []string) (answer string, mine bool, err error) {
	if r.lan == nil {
		return "", false, nil
	}
	return r.lan.Command(r.Now(), words)
}

// HasEthernet reports whether the fabric has Ethernet nodes.
func (r *Rack) HasEthernet() bool { return r.lan != nil }

// EthernetAdapter is an adapter that is plugged in at a host.
type EthernetAdapter struct {
	Host    string
	Program string // that uses it
	Up      bool
}

// EthernetAdapters returns the adapters that are plugged in at hosts. The caller holds the lock.
func (r *Rack) EthernetAdapters() (all []EthernetAdapter) {
	for j := range r.jacks {
		all = append(all, EthernetAdapter{r.lan.Name(j.Node()), j.Program, j.State().Up})
	}
	slices.SortFunc(all, func(a, b EthernetAdapter) int { return cmp.Compare(a.Host, b.Host) })
	return all
}

// quiet is an error that adds nothing to the text.
type quiet struct{ error }

// Error implements error.
func (quiet) Error() string { return "" }

// Unwrap returns the error.
func (q quiet) Unwrap() error { return q.error }

// advanceLAN does what is due on the Ethernet, tells the adapters, and returns when there is more to do.
func (r *Rack) advanceLAN() clock.Time {
	if r.lan == nil {
		return clock.Never
	}
	now := r.Now()
	r.lan.Advance(now)
	for ; !r.lan.Timed() && r.lan.Deadline() <= now.Add(near); now = r.Now() {
		r.lan.Advance(now)
	}
	for p := r.lan.News(); p != nil; p = r.lan.News() {
		if j := r.jacks[p]; j != nil {
			j.changes.Store(p.Changes())
			j.notify()
		}
	}
	if n := r.lan.Noted(); n != r.noted {
		r.noted = n
		for _, j := range r.jacks {
			j.notify()
		}
	}
	return r.lan.Deadline()
}

// incidentAfter returns the first incident after the one with a number that is still kept. The caller holds the lock.
func (r *Rack) incidentAfter(number uint64) (x cable.Incident, found bool) {
	if r.lan == nil {
		return x, false
	}
	for _, i := range r.lan.Incidents() {
		if i.Number > number {
			return cable.Incident{Number: i.Number, Over: i.Over, Kind: i.Kind, Text: i.Text}, true
		}
	}
	return x, false
}

func (j *jack) where() (string, uint8) { return j.rack.lan.Name(j.Node()), 1 }

func (j *jack) ended() bool { return j.Closed() }

func (j *jack) status() cable.State { return cable.State{Ethernet: true, Wire: j.State()} }

// Changes implements inlet.
func (j *jack) Changes() uint64 { return j.changes.Load() }

func (j *jack) transmit(now clock.Time, b []byte) bool { return j.Transmit(now, b) }

func (j *jack) waiting() int { return j.Waiting() }

func (j *jack) deliver(now clock.Time, to sink) (n int) {
	for ; n < turnFrames && j.Waiting() > 0 && to.fits(now); n++ {
		to.put(j.Next(now))
	}
	return n
}

func (j *jack) corrupt() { j.Refused++ }

// heard implements inlet.
func (j *jack) heard(b []byte) error {
	obeys, asks, err := cable.ParsePauses(b)
	if err != nil {
		return err
	}
	now, _ := j.rack.Lock()
	defer j.rack.Unlock()
	j.SetPauses(now, obeys, asks)
	return nil
}

// Close implements inlet: the adapter is pulled out.
func (j *jack) Close() error {
	j.rack.Lock()
	defer j.rack.Unlock()
	j.fall()
	return nil
}

// fall pulls the adapter out. The caller holds the lock.
func (j *jack) fall() {
	j.Jack.Close(j.rack.Now())
	delete(j.rack.jacks, j.Jack)
	j.changes.Store(j.Jack.Changes())
	j.notify()
}
