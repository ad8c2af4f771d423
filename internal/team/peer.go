package team

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// mostPeers is how many peers are known at most; a new one takes the place of that which has asked longest ago. Who is forgotten goes
	// on to send to the member that it knows, until that fails or the peer asks again.
	mostPeers = 1024
	// retellAfter is how long after a question of a station's, which has everybody believe its own MAC, peers are told their member again.
	retellAfter = 100 * time.Millisecond
)

// peerKey is a peer by its address, and the station's address that it has asked for.
type peerKey struct {
	vlan      uint16
	own, addr netip.Addr
}

// peer is one who has been told, or is to be told, to which member to send.
type peer struct {
	mac    eth.MAC
	member int
	met    uint64 // when it asked last, counted in peers
	stale  bool   // it is to be told again
}

// peers are those of a team that balances what it receives.
type peers struct {
	known map[peerKey]*peer
	met   uint64
	due   clock.Time // when those that are stale are told
}

func newPeers() peers { return peers{known: map[peerKey]*peer{}, due: clock.Never} }

// meet returns a peer that has asked, or answered, with the member that it is to send to; nil: none takes frames.
func (t *Team) meet(k peerKey, mac eth.MAC) *peer {
	p := t.peers.known[k]
	if p == nil {
		i := t.fewest(t.crowd())
		if i < 0 {
			return nil
		}
		if len(t.peers.known) == mostPeers {
			t.forget()
		}
		p = &peer{member: i}
		t.peers.known[k] = p
	}
	t.peers.met++
	p.mac, p.met = mac, t.peers.met
	return p
}

// forget drops the peer that has asked longest ago.
func (t *Team) forget() {
	var oldest peerKey
	least := t.peers.met + 1
	for k, p := range t.peers.known {
		if p.met < least {
			oldest, least = k, p.met
		}
	}
	delete(t.peers.known, oldest)
}

// crowd counts the peers of each member.
func (t *Team) crowd() (n [MostMembers]int) {
	for _, p := range t.peers.known {
		n[p.member]++
	}
	return n
}

// fewest is the member that may send, so that frames get to it too, and has the fewest peers for its speed; -1: none may.
func (t *Team) fewest(crowd [MostMembers]int) int {
	best, least := -1, 0.0
	for i := range t.members {
		if m := &t.members[i]; m.sends {
			if share := float64(crowd[i]+1) / m.weight(); best < 0 || share < least {
				best, least = i, share
			}
		}
	}
	return best
}

// regroup gives other members to peers whose own sends nothing any more, and to so many that all have their share, and has those told.
func (t *Team) regroup(now clock.Time) {
	if !t.cfg.Type.tells() {
		return
	}
	crowd := t.crowd()
	for _, k := range t.ordered() {
		p := t.peers.known[k]
		to := t.fewest(crowd)
		switch old := &t.members[p.member]; {
		case to < 0:
			return
		case old.sends && float64(crowd[to]+1)/t.members[to].weight() >= float64(crowd[p.member])/old.weight():
			continue
		}
		crowd[p.member]--
		crowd[to]++
		p.member, p.stale = to, true
		t.peers.due = now
	}
	t.retell(now)
}

// ordered are the peers, in the order in which they have asked.
func (t *Team) ordered() []peerKey {
	return slices.SortedFunc(maps.Keys(t.peers.known), func(a, b peerKey) int {
		return cmp.Compare(t.peers.known[a].met, t.peers.known[b].met)
	})
}

// heardAll notes that everybody has heard that an address of a station's is at the station's MAC.
func (t *Team) heardAll(now clock.Time, vlan uint16, own netip.Addr) {
	for k, p := range t.peers.known {
		if k.vlan == vlan && k.own == own && p.member != t.active {
			p.stale = true
			t.peers.due = clock.Min(t.peers.due, now.Add(retellAfter))
		}
	}
}

// retell tells peers their members, if it is time to.
func (t *Team) retell(now clock.Time) {
	if now < t.peers.due {
		return
	}
	t.peers.due = clock.Never
	for _, k := range t.ordered() {
		if p := t.peers.known[k]; p.stale {
			p.stale = false
			t.counters.Told++
			t.put(p.member, told(k, p.mac, t.address(p.member, t.stationOf(k.vlan, k.own))))
		}
	}
}

// address is the one by which a member is known to those that want a station.
func (t *Team) address(i int, station eth.MAC) eth.MAC {
	if i == t.active && station != (eth.MAC{}) {
		return station
	}
	return t.members[i].own
}

// stationOf returns the MAC of the station that has an address; zero: none has.
func (t *Team) stationOf(vlan uint16, a netip.Addr) eth.MAC {
	for i := range t.stations {
		if s := &t.stations[i]; s.VLAN == vlan && slices.Contains(s.Addrs, a) {
			return s.MAC
		}
	}
	return eth.MAC{}
}
