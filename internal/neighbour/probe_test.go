package neighbour

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// trialOf returns an engine that probes an address, and a step, which advances it and returns the frames that it sends.
func trialOf(t *testing.T, addr netip.Addr, mac eth.MAC) (e *Engine, key Key, at func(after time.Duration) [][]byte) {
	t.Helper()
	e, key = New(Config{}), Key{7, addr}
	if err := e.Probe(0, key, mac); err != nil {
		t.Fatal(err)
	}
	return e, key, func(after time.Duration) (list [][]byte) {
		e.Advance(clock.Time(after))
		for f := e.Frame(nil); f != nil; f = e.Frame(nil) {
			list = append(list, f)
		}
		return list
	}
}

var bothVersions = []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")}

// TestProbes: an address is asked for three times in nobody's name, and used all the while; then it is announced twice (RFC 5227 2.1.1,
// 2.3; RFC 4862 5.4.2).
func TestProbes(t *testing.T) {
	mac := eth.MAC{2, 0, 0, 0, 0, 1}
	for _, addr := range bothVersions {
		e, key, at := trialOf(t, addr, mac)
		other := New(Config{})
		for i := range 3 {
			list := at(time.Duration(i) * probeInterval)
			if len(list) != 1 || e.Deadline() != clock.Time(time.Duration(i+1)*probeInterval) {
				t.Fatalf("%v: %d frames, due at %v", addr, len(list), e.Deadline())
			}
			h, body, err := eth.ParseEthernet(list[0])
			if err != nil || h.Src != mac || h.Dst[0]&1 == 0 || h.TCI != 7 {
				t.Fatalf("%v: %+v, %v", addr, h, err)
			}
			if addr.Is4() {
				a, err := eth.ParseARP(body)
				if err != nil || a.Operation != eth.ARPRequest || !a.SenderIP.IsUnspecified() || a.TargetIP != addr ||
					a.TargetMAC != (eth.MAC{}) {
					t.Errorf("%+v, %v", a, err)
				}
			} else {
				ip, payload, err := eth.ParseIPv6(body)
				d, err2 := eth.ParseDiscovery(payload, ip.Src(), ip.Dst(), ip.HopLimit())
				if err != nil || err2 != nil || !ip.Src().IsUnspecified() || ip.Dst() != eth.SolicitedNode(addr) || d.Advertisement ||
					d.Target != addr || d.Link != nil {
					t.Errorf("%+v, %v, %v", d, err, err2)
				}
			}
			other.Receive(0, list[0])
			if _, answers := e.Answers(key); !answers || other.Counters().Malformed > 0 {
				t.Errorf("%v: it is not answered for, or malformed", addr)
			}
		}
		if n := len(at(3 * probeInterval)); n != 1 {
			t.Errorf("%v: %d announcements, want one", addr, n)
		}
		if n := len(at(3*probeInterval + announceInterval)); n != 1 || e.Deadline() != clock.Never {
			t.Errorf("%v: %d announcements, want another, and nothing more (%v)", addr, n, e.Deadline())
		}
		if e.Conflicts() != nil || e.Counters().Probes != 3 {
			t.Errorf("%v: conflicts", addr)
		}
	}
}

// TestProbes_Lost: whoever answers a probe, or probes the same address meanwhile, has it: it is not answered for, and no questions are
// defended, until the other has left; then it is taken.
func TestProbes_Lost(t *testing.T) {
	mac, theirs := eth.MAC{2, 0, 0, 0, 0, 1}, eth.MAC{2, 0, 0, 0, 0, 2}
	for _, addr := range bothVersions {
		for _, how := range []string{"has it", "probes it"} {
			e, key, at := trialOf(t, addr, mac)
			other := New(Config{})
			if how == "has it" {
				if err := other.Answer(key, theirs); err != nil {
					t.Fatal(err)
				}
			} else if err := other.Probe(0, key, theirs); err != nil {
				t.Fatal(err)
			}
			other.Advance(0)
			talk := func(after time.Duration) {
				for _, f := range at(after) {
					other.Receive(clock.Time(after), f)
				}
				other.Advance(clock.Time(after))
				for f := other.Frame(nil); f != nil; f = other.Frame(nil) {
					e.Receive(clock.Time(after), f)
				}
			}
			talk(0)
			if c := e.Conflicts(); len(c) != 1 || c[0] != (Conflict{Key: key, MAC: theirs}) || !e.Lost(key) {
				t.Fatalf("%v, who %s: conflicts %v", addr, how, c)
			}
			if _, answers := e.Answers(key); answers {
				t.Errorf("%v: it is answered for", addr)
			}
			other.Silence(key) // it leaves
			if len(at(5*time.Second)) != 0 || !e.Lost(key) {
				t.Errorf("%v, who %s: it is asked for too soon (lost %t, due %v)", addr, how, e.Lost(key), e.Deadline())
			}
			begin := e.Deadline()
			if begin < clock.Time(retryAfter) || begin >= clock.Time(retryAfter+retrySpread) {
				t.Errorf("%v: it is asked for again at %v", addr, begin)
			}
			for i := range 4 {
				at(time.Duration(begin) + time.Duration(i)*probeInterval)
			}
			if _, answers := e.Answers(key); !answers || e.Lost(key) {
				t.Errorf("%v: it is not taken", addr)
			}
			if c := e.Conflicts(); len(c) != 1 || c[0] != (Conflict{Key: key, Over: true}) {
				t.Errorf("%v: conflicts %v", addr, c)
			}
		}
	}
}

// TestProbes_Own: what a station here says itself, by a host with its MAC, is no conflict, nor is what comes once the address is
// announced: that is defended. Silence ends probes.
func TestProbes_Own(t *testing.T) {
	mac, theirs := eth.MAC{2, 0, 0, 0, 0, 1}, eth.MAC{2, 0, 0, 0, 0, 2}
	for _, addr := range bothVersions {
		e, key, at := trialOf(t, addr, mac)
		host := New(Config{})
		if err := host.Answer(key, mac); err != nil {
			t.Fatal(err)
		}
		e.Receive(0, host.Frame(nil))
		for i := range 4 {
			at(time.Duration(i) * probeInterval)
		}
		if e.Lost(key) || e.Conflicts() != nil {
			t.Errorf("%v: it is lost to its own host", addr)
		}
		thief := New(Config{})
		if err := thief.Answer(key, theirs); err != nil {
			t.Fatal(err)
		}
		e.Receive(clock.Time(time.Minute), thief.Frame(nil))
		if c := e.Conflicts(); len(c) != 1 || e.Lost(key) {
			t.Errorf("%v: conflicts %v, lost %t; want it defended", addr, c, e.Lost(key))
		}
		e, key, _ = trialOf(t, addr, mac)
		if e.Silence(key); e.Deadline() != clock.Never {
			t.Errorf("%v: it is probed after Silence", addr)
		}
	}
}
