package live

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/link/cable"
)

// inlet is where an adapter of another process is plugged in: an InfiniBand port, or a host of the Ethernet. All but where, Changes,
// heard and Close are called with the rack locked.
type inlet interface {
	// where returns the node, and its port.
	where() (node string, port uint8)
	// ended reports whether the port is closed.
	ended() bool
	// status is what the adapter is told, anew after Changes.
	status() cable.State
	Changes() uint64
	// transmit takes a frame of the adapter; false: there is no room, and the adapter's notify is called when there is.
	transmit(now clock.Time, b []byte) bool
	// waiting returns how many frames wait for the adapter.
	waiting() int
	// deliver hands frames to the adapter, only so many that others have their turn, and returns how many.
	deliver(now clock.Time, to sink) int
	// corrupt notes that a frame of the adapter was damaged.
	corrupt()
	// heard takes a message of the adapter's. The error says that it is none.
	heard(b []byte) error
	Close() error
}

// sink takes frames for an adapter.
type sink interface {
	// fits reports whether a frame can be put in.
	fits(now clock.Time) bool
	put(b []byte)
}

// join plugs in an adapter of another process where it says.
func (r *Rack) join(h *cable.Hello, program string, notify func()) (inlet, error) {
	if h.Ethernet {
		return r.plugEthernet(h.Node, program, notify)
	}
	at, err := r.Find(h.Node, h.Port)
	if err != nil {
		return nil, err
	}
	p, err := r.plug(at, program, notify)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// stateOf returns what the adapter of an inlet is told.
func (r *Rack) stateOf(in inlet) cable.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return in.status()
}

func (p *Port) where() (string, uint8) { return p.rack.name(p.at), p.at.Port }

func (p *Port) ended() bool { return p.closed }

func (p *Port) status() cable.State { return cable.State{Port: p.current()} }

func (p *Port) waiting() int { return p.rack.fabric.Waiting(p.at) }

func (p *Port) heard(b []byte) error {
	if want, ok, err := cable.ParseVirtual(b); ok {
		if err == nil {
			p.SetVirtual(want)
		}
		return err
	}
	v, err := cable.ParseViolation(b)
	if err == nil {
		p.Violation(v)
	}
	return err
}

func (p *Port) corrupt() { p.rack.fabric.Corrupt(p.at) }

func (p *Port) transmit(now clock.Time, b []byte) bool {
	f := p.rack.fabric
	ok, err := f.Transmit(now, p.at, b, nil, nil)
	if !ok && err == nil { // what is in transit may make room
		f.Advance(now)
		ok, err = f.Transmit(now, p.at, b, nil, nil)
	}
	switch {
	case err != nil:
		p.stats.SendErrors++
	case !ok:
		return false
	default:
		p.stats.SentPackets++
		p.stats.SentBytes += uint64(len(b))
	}
	return true
}

func (p *Port) deliver(now clock.Time, to sink) (n int) {
	f := p.rack.fabric
	var parcel [1]*fabric.Parcel
	for ; n < turnFrames && f.Waiting(p.at) > 0 && to.fits(now); n++ {
		f.Collect(now, p.at, parcel[:])
		b := parcel[0].Bytes()
		to.put(b)
		p.stats.ReceivedPackets++
		p.stats.ReceivedBytes += uint64(len(b))
		f.Release(now, parcel[:])
	}
	p.waits = true
	return n
}
