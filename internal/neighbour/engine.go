package neighbour

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// Config configures an Engine. Its zero value is ready to use.
type Config struct {
	// Entries is how many neighbours the engine knows at most; 0: DefaultEntries.
	Entries int
	// Random returns a number from 0 to n-1; nil: the same one always, for tests.
	Random func(n int64) int64
}

// Engine resolves addresses on one Ethernet. Only one goroutine at a time may call its methods.
type Engine struct {
	most     int
	random   func(n int64) int64
	own      map[Key]eth.MAC // addresses for which it answers
	entries  map[Key]*entry
	agenda   clock.Agenda[*entry]
	frames   [][]byte
	changes  []Change
	counters Counters

	trials map[Key]*trial // of addresses that are probed, or lost
	trial  clock.Agenda[*trial]

	conflicts []Conflict
	defended  map[Key]clock.Time // when an address was defended last
}

// Conflict is an address of a station here that somebody else uses, too.
type Conflict struct {
	Key
	MAC  eth.MAC // of the other
	Over bool    // nobody else has it any more
}

const (
	// mostConflicts is how many wait to be taken; more are counted.
	mostConflicts = 8
	// defendInterval is the least time between two defences of an address (RFC 5227 1.1, DEFEND_INTERVAL).
	defendInterval = 10 * time.Second
)

// Conflicts returns the conflicts since the last call.
func (e *Engine) Conflicts() []Conflict {
	c := e.conflicts
	e.conflicts = nil
	return c
}

// conflict notes another station with an address for which the engine answers, and defends it: the other learns that it is not
// alone (RFC 5227 2.4; for IPv6, RFC 4862 5.4.4, it is told likewise). It reports whether the address is the engine's.
func (e *Engine) conflict(now clock.Time, key Key, mac eth.MAC) bool {
	if e.claimed(now, key, mac) {
		return false
	}
	own, ok := e.own[key]
	if !ok || own == mac {
		return ok
	}
	e.counters.Conflicts++
	e.note(Conflict{Key: key, MAC: mac})
	if last, before := e.defended[key]; !before || now >= last.Add(defendInterval) {
		e.defended[key] = now
		e.announce(key, own)
	}
	return true
}

// note keeps a conflict until it is asked for.
func (e *Engine) note(c Conflict) {
	if len(e.conflicts) < mostConflicts && !slices.Contains(e.conflicts, c) {
		e.conflicts = append(e.conflicts, c)
	}
}

// New returns an engine without addresses.
func New(cfg Config) *Engine {
	e := &Engine{most: cfg.Entries, random: cfg.Random, own: map[Key]eth.MAC{}, entries: map[Key]*entry{},
		defended: map[Key]clock.Time{}, trials: map[Key]*trial{}}
	if e.most <= 0 {
		e.most = DefaultEntries
	}
	if e.random == nil {
		e.random = func(n int64) int64 { return n / 2 }
	}
	return e
}

// Counters returns a copy of the counters.
func (e *Engine) Counters() Counters { return e.counters }

// Answer makes the engine answer for an address of a station, and announces it, so that switches and neighbours learn
// where it is now (RFC 5227 2.3, RFC 4861 7.2.6). The error says that the address is no unicast address, is taken by
// another station here, or is one too many.
func (e *Engine) Answer(key Key, mac eth.MAC) error {
	if err := e.take(key, mac); err != nil {
		return err
	}
	e.endTrial(key)
	e.announce(key, mac)
	return nil
}

// take makes an address one of the engine's own.
func (e *Engine) take(key Key, mac eth.MAC) error {
	a := key.Addr
	if !a.IsValid() || a != a.Unmap().WithZone("") || a.IsUnspecified() || a.IsMulticast() {
		return fmt.Errorf("address %v: want a unicast address without a zone", a)
	}
	if old, ok := e.own[key]; ok && old != mac {
		return fmt.Errorf("address %v: station %v has it", a, old)
	}
	if len(e.own) >= MostAddresses {
		return fmt.Errorf("address %v: there are %d already, the most there may be", a, MostAddresses)
	}
	if n := e.entries[key]; n != nil {
		e.fail(n)
	}
	e.own[key] = mac
	return nil
}

// Silence undoes Answer.
func (e *Engine) Silence(key Key) {
	delete(e.own, key)
	delete(e.defended, key)
	e.endTrial(key)
}

// Answers reports for which station of the engine's own an address is.
func (e *Engine) Answers(key Key) (eth.MAC, bool) {
	mac, ok := e.own[key]
	return mac, ok
}

// Part says that a station is gone: nothing is asked on its behalf any more.
func (e *Engine) Part(vlan uint16, mac eth.MAC) {
	for _, n := range e.entries {
		if n.key.VLAN == vlan && n.from.MAC == mac {
			e.fail(n)
		}
	}
}

// Changes returns what has changed since the last call. It is valid until the next call of any method.
func (e *Engine) Changes() []Change {
	c := e.changes
	e.changes = e.changes[:0]
	return c
}

// Frame appends the next frame to be sent to b, with its Ethernet header; nil: there is none.
func (e *Engine) Frame(b []byte) []byte {
	if len(e.frames) == 0 {
		return nil
	}
	f := e.frames[0]
	e.frames[0] = nil
	if e.frames = e.frames[1:]; len(e.frames) == 0 {
		e.frames = nil
	}
	return append(b, f...)
}

// send queues a frame.
func (e *Engine) send(to, from eth.MAC, vlan uint16, kind eth.EtherType, body func(b []byte) []byte) {
	if len(e.frames) >= mostFrames {
		e.counters.Dropped++
		return
	}
	h := eth.Ethernet{Dst: to, Src: from, Tagged: vlan != 0, TCI: vlan, Type: kind}
	e.frames = append(e.frames, body(h.Append(nil)))
}

var allNodes = netip.MustParseAddr("ff02::1")

// sendDiscovery queues a frame to a node, or to the group dst.
func (e *Engine) sendDiscovery(d *eth.Discovery, from eth.MAC, vlan uint16, to eth.MAC, src, dst netip.Addr) {
	if group, ok := eth.MulticastMAC(dst); ok {
		to = group
	}
	d.Link = from[:]
	e.send(to, from, vlan, eth.TypeIPv6, func(b []byte) []byte { return d.AppendPacket(b, src, dst) })
}

// announce says where an address of a station is.
func (e *Engine) announce(key Key, mac eth.MAC) {
	if key.Addr.Is4() {
		a := eth.ARP{Operation: eth.ARPRequest, SenderMAC: mac, SenderIP: key.Addr, TargetIP: key.Addr}
		e.send(eth.Broadcast, mac, key.VLAN, eth.TypeARP, a.Append)
		return
	}
	d := eth.Discovery{Advertisement: true, Override: true, Target: key.Addr}
	e.sendDiscovery(&d, mac, key.VLAN, eth.MAC{}, key.Addr, allNodes)
}

// solicit sends the question for an entry's address.
func (e *Engine) solicit(n *entry) {
	if n.key.Addr.Is4() {
		a := eth.ARP{Operation: eth.ARPRequest, SenderMAC: n.from.MAC, SenderIP: n.from.Addr, TargetIP: n.key.Addr}
		to := eth.Broadcast
		if n.known() {
			a.TargetMAC, to = n.mac, n.mac
		}
		e.send(to, n.from.MAC, n.key.VLAN, eth.TypeARP, a.Append)
		return
	}
	d := eth.Discovery{Target: n.key.Addr}
	dst := eth.SolicitedNode(n.key.Addr)
	if n.known() {
		dst = n.key.Addr
	}
	e.sendDiscovery(&d, n.from.MAC, n.key.VLAN, n.mac, n.from.Addr, dst)
}
