package lan

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// mostWaiting is how many frames wait for an adapter outside the station, and enough how few make it go on.
	mostWaiting = 64
	enough      = mostWaiting / 2
	// mostPauses is with how many frames waiting pauses are lost: they come whether the adapter takes anything or not.
	mostPauses = 4 * mostWaiting
)

// Errors of Plug.
var (
	ErrTaken    = errors.New("an adapter is already plugged in there")
	ErrNoneFree = fmt.Errorf("all hosts of the fabric are plugged in: %w", ErrTaken)
	ErrNoHost   = errors.New("no host of the fabric")
)

// Jack is where an adapter is plugged in at a host.
type Jack struct {
	// Program is the name of the program that has plugged in.
	Program string

	net    *Network
	node   int
	queue  []ethernet.Ref // for the adapter
	head   int
	held   bool // the station keeps what comes
	told   bool
	closed bool
	frame  []byte
	// Refused counts frames of the adapter that are none: too short, or too long.
	Refused uint64
	// obeys and asks are the pauses of the adapter's port.
	obeys, asks pause.Scope
	changes     uint64
	up          bool
	rate        uint64
}

// Plug plugs an adapter in at a host, the first that is free if name is empty, and takes its link up. The error is or wraps
// ErrTaken or ErrNoHost.
func (n *Network) Plug(now clock.Time, name, program string) (*Jack, error) {
	node := n.Find(name)
	for i := 0; name == "" && node < 0; i++ {
		if i == len(n.jacks) {
			return nil, ErrNoneFree
		}
		if n.Host(i) && n.jacks[i] == nil {
			node = i
		}
	}
	switch {
	case node < 0 || !n.Host(node):
		return nil, fmt.Errorf("node %q: %w", name, ErrNoHost)
	case n.jacks[node] != nil:
		return nil, fmt.Errorf("host %q: %w", name, ErrTaken)
	}
	j := &Jack{net: n, node: node, Program: program}
	n.jacks[node] = j
	at := ethernet.End{Node: node}
	n.restore(now, at, n.fabric.Peer(at))
	n.fabric.Station(node).Hold(now, n.hung[node])
	n.fabric.Wake(node)
	return j, nil
}

// Node returns the number of the host.
func (j *Jack) Node() int { return j.node }

// Closed reports whether the adapter has been pulled out.
func (j *Jack) Closed() bool { return j.closed }

// Close pulls the adapter out: the link goes down, and what waits is lost.
func (j *Jack) Close(now clock.Time) {
	if j.closed {
		return
	}
	j.closed = true
	n := j.net
	for j.Waiting() > 0 {
		n.fabric.Store.Drop(j.take())
	}
	n.jacks[j.node] = nil
	n.followPauses(now, j.node)
	at := ethernet.End{Node: j.node}
	n.restore(now, at, n.fabric.Peer(at))
}

// SetPauses says which pauses the adapter's port obeys and sends. The host's end of the link does the same, unless it has its own:
// what the adapter has sent waits there, and what it does not take.
func (j *Jack) SetPauses(now clock.Time, obeys, asks pause.Scope) {
	j.obeys, j.asks = obeys, asks
	if !j.closed {
		j.net.followPauses(now, j.node)
	}
}

// followPauses makes a host's end of its link obey and send the pauses of the adapter there, if it has none of its own.
func (n *Network) followPauses(now clock.Time, node int) {
	if n.own[node] {
		return
	}
	var obeys, asks pause.Scope
	if j := n.jacks[node]; j != nil {
		obeys, asks = j.obeys, j.asks
	}
	w := n.fabric.Station(node).Wire()
	if o, a := w.Pauses(); o == obeys && a == asks {
		return
	}
	if w.SetPauses(now, obeys, asks) != nil { // the buffer has no room for what would wait
		_ = w.SetPauses(now, obeys, pause.Scope{})
	}
	n.fabric.Wake(node)
}

// State returns the state of the link.
func (j *Jack) State() link.State {
	p := j.net.fabric.Station(j.node).Wire()
	s := link.State{Up: p.Up() && !j.closed}
	if j.net.timing {
		s.Speed = p.Config().Rate
	}
	return s
}

// Changes returns a number that is another one after the state has changed.
func (j *Jack) Changes() uint64 {
	if s := j.State(); s.Up != j.up || s.Speed != j.rate {
		j.up, j.rate = s.Up, s.Speed
		j.changes++
	}
	return j.changes
}

// Transmit takes a copy of a frame of the adapter's; false: there is no room at its priority, and the jack is among the News when
// there is.
func (j *Jack) Transmit(now clock.Time, b []byte) bool {
	f := &j.net.fabric
	s := f.Station(j.node)
	if len(b) < eth.EthernetLen || len(b) > s.Wire().Config().MTU+eth.EthernetLen+eth.VLANLen {
		j.Refused++
		return true
	}
	r := f.Store.Put(b, 0)
	if !f.Send(now, j.node, r) {
		f.Store.Drop(r)
		return false
	}
	return true
}

// control reports whether a frame is one of MAC control.
func control(b []byte) bool {
	return eth.EtherType(binary.BigEndian.Uint16(b[2*len(eth.MAC{}):])) == eth.TypeMACControl
}

// deliver takes a frame that a station hands over.
func (n *Network) deliver(now clock.Time, at ethernet.End, f ethernet.Ref) {
	j := n.jacks[at.Node]
	if j == nil || j.Waiting() >= mostPauses && control(n.fabric.Store.Head(f)) {
		n.fabric.Store.Drop(f)
		return
	}
	j.queue = append(j.queue, f)
	if !j.held && j.Waiting() >= mostWaiting {
		j.hold(now, true)
	}
	j.tell()
}

func (j *Jack) hold(now clock.Time, hold bool) {
	j.held = hold
	j.net.fabric.Station(j.node).Hold(now, hold || j.net.hung[j.node])
	j.net.fabric.Wake(j.node)
}

// tell puts the jack among those with news.
func (j *Jack) tell() {
	if !j.told {
		j.told = true
		j.net.news = append(j.net.news, j)
	}
}

// Waiting returns how many frames wait for the adapter.
func (j *Jack) Waiting() int { return len(j.queue) - j.head }

func (j *Jack) take() ethernet.Ref {
	r := j.queue[j.head]
	if j.head++; j.head == len(j.queue) || j.head == 4*mostWaiting {
		j.queue, j.head = j.queue[:copy(j.queue, j.queue[j.head:])], 0
	}
	return r
}

// Next takes the next frame for the adapter, of which there is one. It is valid until the next call.
func (j *Jack) Next(now clock.Time) []byte {
	r := j.take()
	f := &j.net.fabric
	j.frame = f.Store.Append(j.frame[:0], r)
	f.Store.Drop(r)
	if j.held && j.Waiting() <= enough {
		j.hold(now, false)
	}
	return j.frame
}
