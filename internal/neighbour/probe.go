package neighbour

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// Addresses that others may have are probed (RFC 5227 2.1, RFC 4862 5.4) while they are in use already, as optimistic ones are
// (RFC 4429): waiting for the end of the probes would hold up whoever starts an adapter. Until then they are answered for, but not
// announced, so that nobody's table is changed. The times are shorter than the seconds of RFC 5227 1.1 and RFC 4861 10, which are
// for hosts that do wait: who is there answers within milliseconds.
const (
	// probes are sent for an address (PROBE_NUM), at these intervals; the address is announced after the last one's, and once more
	// after announceInterval (ANNOUNCE_NUM, ANNOUNCE_INTERVAL).
	probes           = 3
	probeInterval    = 100 * time.Millisecond
	announceInterval = 2 * time.Second
	// retryAfter is when an address that somebody else has is probed again, and up to retrySpread later, so that two who have
	// withdrawn before each other do not meet again.
	retryAfter  = 10 * time.Second
	retrySpread = 5 * time.Second
)

// trial is an address that is probed, or that somebody else has.
type trial struct {
	key  Key
	mac  eth.MAC // of the station here
	sent int     // probes; more than that: announcements besides
	lost bool    // somebody else has it
	due  clock.Appointment[*trial]
}

// Probe is Answer for an address that somebody else may have: the engine answers for it, and announces it once nobody has claimed it.
// If somebody does, it is lost, which is a Conflict, until nobody has it any more, which is one that is Over.
func (e *Engine) Probe(now clock.Time, key Key, mac eth.MAC) error {
	if t := e.trials[key]; t != nil && t.mac == mac {
		return nil
	}
	if own, ok := e.own[key]; ok && own == mac {
		return nil // it is defended already
	}
	if err := e.take(key, mac); err != nil {
		return err
	}
	e.endTrial(key)
	t := &trial{key: key, mac: mac}
	t.due.Of = t
	e.trials[key] = t
	e.trial.Set(&t.due, now)
	return nil
}

// Lost reports whether an address is somebody else's.
func (e *Engine) Lost(key Key) bool {
	t := e.trials[key]
	return t != nil && t.lost
}

func (e *Engine) endTrial(key Key) {
	if t := e.trials[key]; t != nil {
		e.trial.Drop(&t.due)
		delete(e.trials, key)
	}
}

// try does what is due for an address.
func (e *Engine) try(now clock.Time, t *trial) {
	switch {
	case t.sent < probes:
		e.probe(t)
		e.trial.Set(&t.due, now.Add(probeInterval))
	case t.sent == probes:
		if t.lost {
			t.lost = false
			e.own[t.key] = t.mac
			e.note(Conflict{Key: t.key, Over: true})
		}
		e.announce(t.key, t.mac)
		e.trial.Set(&t.due, now.Add(announceInterval))
	default:
		e.announce(t.key, t.mac)
		e.endTrial(t.key)
		return
	}
	t.sent++
}

// claimed notes that a station has, or probes, an address. It reports whether that address was being probed here, and is lost now.
func (e *Engine) claimed(now clock.Time, key Key, mac eth.MAC) bool {
	t := e.trials[key]
	if t == nil || t.sent > probes || mac == t.mac || mac == (eth.MAC{}) {
		return false
	}
	e.counters.Conflicts++
	if !t.lost || t.sent > 0 {
		e.note(Conflict{Key: key, MAC: mac})
	}
	t.lost, t.sent = true, 0
	delete(e.own, key)
	e.trial.Set(&t.due, now.Add(retryAfter+time.Duration(e.random(int64(retrySpread)))))
	return true
}

// probe asks whether anybody has an address, in nobody's name.
func (e *Engine) probe(t *trial) {
	e.counters.Probes++
	if t.key.Addr.Is4() {
		a := eth.ARP{Operation: eth.ARPRequest, SenderMAC: t.mac, SenderIP: netip.IPv4Unspecified(), TargetIP: t.key.Addr}
		e.send(eth.Broadcast, t.mac, t.key.VLAN, eth.TypeARP, a.Append)
		return
	}
	d, dst := eth.Discovery{Target: t.key.Addr}, eth.SolicitedNode(t.key.Addr)
	to, _ := eth.MulticastMAC(dst)
	e.send(to, t.mac, t.key.VLAN, eth.TypeIPv6, func(b []byte) []byte { return d.AppendPacket(b, netip.IPv6Unspecified(), dst) })
}
