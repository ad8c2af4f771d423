package ethernet

import (
	"fmt"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// flow is frames from one station to another, as fast as the sender's port takes them.
type flow struct {
	from, to byte
	priority uint8
	ecn      uint8
	port     uint16
	gateway  eth.MAC
	length   int
	frames   int // to be sent

	sent, got uint32
	waiting   Ref // had no room
}

// load is a fabric with flows. Stations are numbered as the fabric's nodes; what arrives must be in order, once.
type load struct {
	t interface {
		Helper()
		Errorf(string, ...any)
		Fatalf(string, ...any)
		Fatal(...any)
	}
	Fabric
	flows map[[2]byte]*flow // by sender and priority
	lossy bool              // frames may be missing
	now   clock.Time
	bytes map[byte]int // that arrived, by sender
}

func newLoad(t testing.TB) *load {
	l := &load{t: t, flows: map[[2]byte]*flow{}, bytes: map[byte]int{}}
	l.Deliver = l.deliver
	return l
}

func (l *load) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// toSwitch adds a switch and returns its number.
func (l *load) toSwitch(cfg Config, ports []PortConfig, bundles ...[]int) int {
	l.t.Helper()
	s, err := New(&l.Store, cfg, ports, bundles...)
	l.must(err)
	return l.AddSwitch(s)
}

// station adds a station at a port of a switch, and returns its number.
func (l *load) station(cfg StationConfig, sw, port int) byte {
	l.t.Helper()
	s, err := NewStation(&l.Store, cfg)
	l.must(err)
	n := l.AddStation(s)
	l.must(l.Connect(End{n, wire}, End{sw, port}))
	l.learn(sw, port, byte(n))
	return byte(n)
}

// learn makes a switch know where a station is.
func (l *load) learn(sw, port int, station byte) {
	if p := l.Switch(sw).Port(port); p.relay != nil {
		p.relay.Decide(l.now, eth.Broadcast, stationMAC(station), p.cfg.PVID)
	}
}

func (l *load) add(f flow) *flow {
	l.flows[[2]byte{f.from, f.priority}] = &f
	return &f
}

func (l *load) deliver(_ clock.Time, at End, r Ref) {
	b := l.Store.Append(nil, r)
	from, n := serial(b)
	f := l.flows[[2]byte{from, b[15] >> 5}]
	switch {
	case f == nil || int(f.to) != at.Node || at.Port != l.Station(at.Node).host:
		l.t.Fatalf("frame %d of %d arrives at %v", n, from, at)
	case n < f.got || n > f.got && !l.lossy:
		l.t.Fatalf("frame %d of %d at priority %d arrives, want %d", n, from, f.priority, f.got)
	}
	f.got = n + 1
	l.bytes[from] += l.Store.Len(r)
	l.Store.Drop(r)
}

// offer sends what a flow's port takes.
func (l *load) offer(f *flow) {
	for int(f.sent) < f.frames {
		if f.waiting == 0 {
			f.waiting = packet{from: f.from, to: f.to, class: f.priority<<5 | f.ecn, port: f.port, gateway: f.gateway, length: f.length,
				serial: f.sent}.put(&l.Store)
		}
		if !l.Send(l.now, int(f.from), f.waiting) {
			return
		}
		f.waiting = 0
		f.sent++
	}
}

// run sends what the flows have, until a time or until nothing is left to do.
func (l *load) run(until time.Duration) {
	for _, f := range l.sorted() {
		l.offer(f)
	}
	for at := l.Deadline(); at <= clock.Time(until); at = l.Deadline() {
		l.now = at
		l.Advance(at)
		for n, room, ok := l.Room(); ok; n, room, ok = l.Room() {
			for i := range uint8(8) {
				if f := l.flows[[2]byte{byte(n), i}]; room>>i&1 != 0 && f != nil {
					l.offer(f)
				}
			}
		}
	}
	l.now = clock.Time(until)
}

func (l *load) sorted() (all []*flow) {
	for n := range l.nodes {
		for i := range byte(8) {
			if f := l.flows[[2]byte{byte(n), i}]; f != nil {
				all = append(all, f)
			}
		}
	}
	return all
}

// drops returns what was lost in all switches and stations.
func (l *load) drops() (n uint64, how string) {
	for i := range l.nodes {
		for j := range l.nodes[i].Switch.ports {
			c := l.nodes[i].Switch.Port(j).Counters(l.now)
			d := c.Dropped
			n += d.Malformed + d.UnknownVLAN + d.Reserved + d.Filtered + d.TooLong + d.HopLimit + d.NoRoute + d.Down
			for k, p := range c.Priority {
				lost := p.QueueDrops + p.BufferDrops + p.HeadroomDrops
				if n += lost; lost > 0 {
					how += fmt.Sprintf("node %d port %d priority %d: %d queue, %d buffer, %d headroom; ", i, j, k, p.QueueDrops, p.BufferDrops,
						p.HeadroomDrops)
				}
			}
		}
	}
	return n, how
}

// complete checks that every frame has arrived, that nothing was lost, and that nothing is left anywhere.
func (l *load) complete() {
	l.t.Helper()
	for _, f := range l.sorted() {
		if int(f.got) != f.frames {
			l.t.Errorf("%d of %d frames of %d have arrived at priority %d", f.got, f.frames, f.from, f.priority)
		}
	}
	if n, how := l.drops(); n > 0 {
		l.t.Errorf("%d frames were lost: %s", n, how)
	}
	l.empty()
}

// empty checks that nothing is left anywhere.
func (l *load) empty() {
	l.t.Helper()
	for i := range l.nodes {
		if u := l.nodes[i].Switch.Usage(l.now); u.Used != 0 || u.Headroom != 0 {
			l.t.Errorf("node %d still uses %+v", i, u)
		}
	}
	if n := l.Store.Frames(); n != 0 {
		l.t.Errorf("%d frames are left", n)
	}
}

// star is senders and a receiver around one switch. Every port is as cfg says.
func star(t testing.TB, senders int, cfg Config, port PortConfig, receiver StationConfig) (l *load, to byte, from []byte) {
	t.Helper()
	l = newLoad(t)
	ports := make([]PortConfig, senders+1)
	for i := range ports {
		ports[i] = port
	}
	sw := l.toSwitch(cfg, ports)
	to = l.station(receiver, sw, 0)
	for i := range senders {
		from = append(from, l.station(StationConfig{Wire: port}, sw, i+1))
	}
	return l, to, from
}
