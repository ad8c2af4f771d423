package team

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// town is a team with one or more stations at a switch that learns, with peers at other ports of it: what they know of a station's
// addresses they have heard.
type town struct {
	*rapid.T
	team  *Team
	now   clock.Time
	up    []bool          // by place: the link of a member that there is
	in    []bool          // whether there is a member
	made  int             // how many there were
	port  map[eth.MAC]int // where the switch has seen an address; members first, then peers
	peers []resident
	homes []Station
	// got are the frames that the team has taken since the last look.
	got [][]byte
}

// resident is a peer with its cache of neighbours, and the station that it speaks with.
type resident struct {
	mac   eth.MAC
	addr  netip.Addr
	with  *Station
	knows map[netip.Addr]eth.MAC
}

// home is a station of the team: the adapter's, and then those of virtual functions, which have addresses of their own.
func home(n int) Station {
	v4, v6, mac := stationV4.As4(), stationV6.As16(), stationMAC
	v4[2], v6[14], mac[4] = byte(n), byte(n), byte(n)
	return Station{MAC: mac, Addrs: []netip.Addr{netip.AddrFrom4(v4), netip.AddrFrom16(v6)}}
}

// places is how many members a town's team has at most.
const places = 5

func newTown(t *testing.T, r *rapid.T) *town {
	n := rapid.IntRange(1, 4).Draw(r, "members")
	kind := rapid.SampledFrom([]Type{AFT, SLB, RLB, ALB}).Draw(r, "type")
	w := &town{T: r, port: map[eth.MAC]int{}, up: make([]bool, places), in: make([]bool, places), made: n}
	w.team = teamOf(t, kind, n, func(c *Config) {
		c.NoFailBack = rapid.Bool().Draw(r, "stays")
		c.Members[rapid.IntRange(0, n-1).Draw(r, "primary")].Primary = true
	})
	for i := range n {
		w.up[i], w.in[i] = true, true
	}
	for n := range rapid.IntRange(1, 3).Draw(r, "stations") {
		w.homes = append(w.homes, home(n))
	}
	w.team.SetStations(w.homes)
	for p := range rapid.IntRange(1, 5).Draw(r, "peers") {
		a4, a6 := peerV4.As4(), peerV6.As16()
		a4[3], a6[15] = byte(10+p), byte(10+p)
		addr := netip.AddrFrom4(a4)
		if p%2 == 1 {
			addr = netip.AddrFrom16(a6)
		}
		w.peers = append(w.peers, resident{eth.MAC{0x02, 0xcc, 0, 0, 0, byte(p)}, addr, &w.homes[p%len(w.homes)], map[netip.Addr]eth.MAC{}})
	}
	return w
}

// station is the address of the station that a peer speaks with.
func (p *resident) station() netip.Addr {
	if p.addr.Is4() {
		return p.with.Addrs[0]
	}
	return p.with.Addrs[1]
}

// settle does what is due now, and carries what the team has to say.
func (w *town) settle() {
	w.team.Advance(w.now)
	for _, f := range drain(w.team) {
		w.carry(f.member, f.frame)
	}
}

// carry lets the switch have a frame from a port: a member's, or a peer's.
func (w *town) carry(at int, b []byte) {
	n := len(w.up)
	if at < n && !w.up[at] {
		return // the link is down
	}
	w.port[from(b)] = at
	to, known := w.port[eth.MAC(b)]
	for p := range n + len(w.peers) {
		if p == at || known && p != to {
			continue
		}
		w.deliver(p, append([]byte(nil), b...))
	}
}

func (w *town) deliver(p int, b []byte) {
	n := len(w.up)
	if p < n {
		if w.up[p] && w.team.Receive(w.now, p, b) {
			w.got = append(w.got, b)
		}
		return
	}
	r := &w.peers[p-n]
	var x notice
	if dst := eth.MAC(b); (dst == r.mac || dst[0]&1 != 0) && x.parse(b) {
		if _, met := r.knows[x.addr]; met || x.answer || x.to == r.addr {
			r.knows[x.addr] = x.mac
		}
	}
}

// send lets a station send a frame.
func (w *town) send(b []byte) {
	if i := w.team.Send(w.now, b, len(b)); i >= 0 {
		w.carry(i, b)
	}
}

// ask lets a peer ask for its station, which answers if it hears that.
func (w *town) ask(p int) {
	r := &w.peers[p]
	w.got = nil
	if r.addr.Is4() {
		w.carry(len(w.up)+p, arp(eth.ARPRequest, eth.Broadcast, r.mac, r.addr, r.station()))
	} else {
		nodes := eth.SolicitedNode(r.station())
		group, _ := eth.MulticastMAC(nodes)
		d := eth.Discovery{Target: r.station(), Link: r.mac[:]}
		w.carry(len(w.up)+p, d.AppendPacket(header(group, r.mac, 0, eth.TypeIPv6), r.addr, nodes))
	}
	for range w.got {
		if r.addr.Is4() {
			w.send(arp(eth.ARPReply, r.mac, r.with.MAC, r.station(), r.addr))
		} else {
			w.send(advertisement(r.mac, r.with.MAC, r.station(), r.addr))
		}
	}
	if up, _ := w.team.Up(); up != (len(w.got) == 1) {
		w.Fatalf("the team is up: %v, and hears a question %d times", up, len(w.got))
	}
}

// question lets a peer's station ask for it, and it answers.
func (w *town) question(p int) {
	r := &w.peers[p]
	if !r.addr.Is4() {
		return
	}
	w.send(arp(eth.ARPRequest, eth.Broadcast, r.with.MAC, r.station(), r.addr))
	if mac, ok := r.knows[r.station()]; ok {
		w.carry(len(w.up)+p, arp(eth.ARPReply, mac, r.mac, r.addr, r.station()))
	}
}

// flip takes a member's link down or up, if it is there; the switch forgets who was there.
func (w *town) flip(i int) {
	if !w.in[i] {
		return
	}
	w.up[i] = !w.up[i]
	w.forget(i)
	w.team.SetLink(w.now, i, w.up[i], gigabit)
}

func (w *town) forget(i int) {
	for mac, p := range w.port {
		if p == i {
			delete(w.port, mac)
		}
	}
}

// leave takes a member out, if it is there, and join has another come.
func (w *town) leave(i int) {
	if w.in[i] {
		w.up[i], w.in[i] = false, false
		w.forget(i)
		w.team.Leave(w.now, i)
	}
}

func (w *town) join() {
	if !slices.Contains(w.in, false) {
		return
	}
	i, err := w.team.Join(Member{MAC: memberMAC(w.made)})
	if err != nil || w.in[i] {
		w.Fatalf("another member is at place %d: %v", i, err)
	}
	w.made++
	w.up[i], w.in[i] = true, true
	w.team.SetLink(w.now, i, true, gigabit)
}

// check has each peer that knows its station send to it: that gets the frame once, at its own MAC.
func (w *town) check() {
	w.settle()
	for next := w.team.Deadline(); next <= w.now.Add(retellAfter); next = w.team.Deadline() {
		w.now = max(w.now, next)
		w.settle()
	}
	if up, _ := w.team.Up(); !up {
		return
	}
	w.checkShares()
	for p := range w.peers {
		r := &w.peers[p]
		mac, ok := r.knows[r.station()]
		if !ok {
			continue
		}
		w.got = nil
		w.carry(len(w.up)+p, datagram(r.mac, mac, netip.AddrPortFrom(r.addr, 7), netip.AddrPortFrom(r.station(), 4791)))
		if len(w.got) != 1 || eth.MAC(w.got[0]) != r.with.MAC {
			w.Fatalf("peer %d sends to %v: its station gets %d frames; %s", p, mac, len(w.got), w)
		}
	}
}

// checkShares has each peer know the member that it was given, by that one's own address unless it is active.
func (w *town) checkShares() {
	for p := range w.peers {
		r := &w.peers[p]
		given := w.team.peers.known[peerKey{0, r.station(), r.addr}]
		if given == nil {
			continue
		}
		if mac := r.knows[r.station()]; given.stale || given.member != w.team.active && mac != w.team.Own(given.member) {
			w.Fatalf("peer %d knows %v, and is given member %d (to be told: %v); %s", p, mac, given.member, given.stale, w)
		}
	}
}

// String shows the members.
func (w *town) String() string {
	s := ""
	for i := range w.team.Members() {
		s += fmt.Sprintf("[%d %v %v %+v] ", i, w.up[i], w.team.Own(i), w.team.Status(i))
	}
	return fmt.Sprintf("%s active %d", s, w.team.active)
}

// TestTown: whatever fails and comes back, whichever members leave and join, whoever asks whom, and however many stations there are, as
// long as a member is up every peer that knows its station reaches it, and that gets each frame once.
func TestTown(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newTown(t, r)
		w.settle()
		r.Repeat(map[string]func(*rapid.T){
			"ask":      func(r *rapid.T) { w.ask(rapid.IntRange(0, len(w.peers)-1).Draw(r, "peer")) },
			"question": func(r *rapid.T) { w.question(rapid.IntRange(0, len(w.peers)-1).Draw(r, "peer")) },
			"flip":     func(r *rapid.T) { w.flip(rapid.IntRange(0, len(w.up)-1).Draw(r, "member")) },
			"leave":    func(r *rapid.T) { w.leave(rapid.IntRange(0, len(w.up)-1).Draw(r, "member")) },
			"join":     func(*rapid.T) { w.join() },
			"wait": func(r *rapid.T) {
				w.now = w.now.Add(rapid.SampledFrom(announcements[1:]).Draw(r, "wait"))
				w.settle()
			},
			"send": func(r *rapid.T) {
				h := rapid.SampledFrom(w.homes).Draw(r, "station")
				from := netip.AddrPortFrom(h.Addrs[0], rapid.Uint16().Draw(r, "flow"))
				w.send(datagram(h.MAC, strangeMAC, from, netip.AddrPortFrom(peerV4, 4791)))
			},
			"forge": w.forge,
			"":      func(r *rapid.T) { w.check() },
		})
	})
}

// forge lets a station say that another's address is at its own MAC, in an answer to a peer: the peer gets that as it is, and is given no
// member for the other's address.
func (w *town) forge(r *rapid.T) {
	p := &w.peers[rapid.IntRange(0, len(w.peers)-1).Draw(r, "peer")]
	i := rapid.IntRange(0, len(w.homes)-1).Draw(r, "station")
	if v := &w.homes[i]; v != p.with && w.team.active >= 0 {
		b := arp(eth.ARPReply, p.mac, v.MAC, p.with.Addrs[0], peerV4)
		known := len(w.team.peers.known)
		if at := w.team.Send(w.now, b, len(b)); at != w.team.active || from(b) != v.MAC || len(w.team.peers.known) != known {
			r.Fatalf("a forged answer leaves by member %d from %v, with %d peers known", at, from(b), len(w.team.peers.known))
		}
	}
}
