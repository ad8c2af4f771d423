package sim_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/eth"
)

// narrow is a learning switch that takes bits from each socket at a rate, without anything between frames, and makes ports wait.
type narrow struct {
	learning
	rate  float64 // bit/s
	now   clock.Time
	free  [2]clock.Time
	waits [2]bool
}

func (s *narrow) Advance(now clock.Time) { s.now = now }

func (s *narrow) Deadline() clock.Time {
	due := clock.Never
	for i, waits := range s.waits {
		if waits {
			due = clock.Min(due, s.free[i])
		}
	}
	return due
}

func (s *narrow) Room() (socket int, ok bool) {
	for i, waits := range s.waits {
		if waits && s.now >= s.free[i] {
			s.waits[i] = false
			return i, true
		}
	}
	return 0, false
}

func (s *narrow) Accept(now clock.Time, socket int, b []byte) bool {
	if now < s.free[socket] {
		s.waits[socket] = true
		return false
	}
	s.free[socket] = now.Add(time.Duration(float64(len(b)) * 8 / s.rate * 1e9))
	return s.learning.Accept(now, socket, b)
}

// flood is the host of an Ethernet function that always has something to send at two priorities.
type flood struct {
	f    *ethernet.Function
	send ethernet.Send
}

// atPriorities are those at which a flood sends.
var atPriorities = [2]uint16{0, 5}

func (h *flood) Indicate(_ clock.Time, _ int, list []ethernet.Packet) int { return len(list) }
func (h *flood) Sent(clock.Time, int, int)                                {}
func (h *flood) Raised(clock.Time, ethernet.Event)                        {}

// settle keeps the function's rings full.
func (h *flood) settle(now clock.Time) {
	for q, p := range atPriorities { // sends of a queue are complete in order: each priority has one of its own
		for h.f.SendRoom(q) > 0 {
			x := h.send
			x.Tagged, x.TCI = true, p<<13
			if err := h.f.Send(now, q, &x); err != nil {
				panic(err)
			}
		}
	}
}

// twin is a port with two RDMA functions and an Ethernet function on one wire.
type twin struct {
	p     *port.Port
	peers [2]*peer
	host  *flood
}

func newTwin(t *testing.T, node *sim.Node, i int) *twin {
	x := &twin{p: new(port.Port)}
	w := new(port.Wire)
	for k := range x.peers {
		y := newPeer(t, netip.AddrFrom4([4]byte{10, 0, byte(k), byte(1 + i)}))
		e, err := encap.New(encap.RoCEv2, []netip.Addr{y.addr}, link.Capabilities{Raw: true, MaxSegments: 1, MTU: 1500}, 0)
		if err != nil {
			t.Fatal(err)
		}
		x.p.Attach(y.e, port.Station{MAC: macOf(i, k)}).Plug(w, netip.Addr{}, e)
		x.peers[k] = y
	}
	cfg := ethernet.Defaults(catalogue.MLX5)
	cfg.MAC, cfg.TransmitBuffers = macOf(i, 2), 256
	x.host = &flood{send: largeSend(cfg.MAC, macOf(1-i, 2), 0, make([]byte, 20000))}
	var err error
	if x.host.f, err = ethernet.New(cfg, x.host); err != nil {
		t.Fatal(err)
	}
	at := x.p.Attach(x.host.f, port.Station{MAC: cfg.MAC, Kind: port.Ethernet})
	at.Plug(w, netip.Addr{}, nil)
	x.host.f.SetWire(at)
	wired := node.Plug(i, x.peers[0].addr, sim.Drive(x.p, w))
	wired.Codec = whole{}
	wired.Settle = func(now clock.Time) {
		for _, y := range x.peers {
			y.settle(now)
		}
		if i == 0 {
			x.host.settle(now)
		}
	}
	for _, y := range x.peers {
		y.port = wired
	}
	return x
}

func macOf(i, k int) eth.MAC { return eth.MAC{2, 0, 0, 0, byte(k), byte(1 + i)} }

// TestShares_RDMABesideEthernet: with all classes backlogged, RDMA writes of two functions and large sends of a third get the parts of
// a port's wire that are configured, within 2 %, and rates are kept.
func TestShares_RDMABesideEthernet(t *testing.T) {
	const wire = 10e9
	for _, x := range []struct {
		name                string
		classes, bandwidths string
		rates               qos.Rates
		limit               uint32          // of the queue pair at priority 3, in kbit/s
		want                map[int]float64 // parts of the wire in percent, by priority
	}{
		{"four that share", "3:1,4:2,5:3", "0:10,1:40,2:20,3:30", qos.Rates{}, 0, map[int]float64{0: 10, 3: 40, 4: 20, 5: 30}},
		{"two of them in one class", "3:1,4:1,5:3", "0:20,1:60,3:20", qos.Rates{}, 0, map[int]float64{0: 20, 3: 30, 4: 30, 5: 20}},
		{"small shares", "3:1,4:2,5:3", "0:1,1:2,2:3,3:94", qos.Rates{}, 0, map[int]float64{0: 1, 3: 2, 4: 3, 5: 94}},
		{"a rate", "3:1,4:2,5:3", "0:10,1:40,2:20,3:30", qos.Rates{1: 1000}, 0, map[int]float64{0: 15, 3: 10, 4: 30, 5: 45}},
		{"a queue pair that its program limits", "3:1,4:2,5:3", "0:10,1:40,2:20,3:30", qos.Rates{}, 1e6,
			map[int]float64{0: 15, 3: 10, 4: 30, 5: 45}},
		{"one that its program would let be faster", "3:1,4:2,5:3", "0:10,1:40,2:20,3:30", qos.Rates{}, 6e6,
			map[int]float64{0: 10, 3: 40, 4: 20, 5: 30}},
		{"strict with a rate", "3:7,4:2,5:3", "0:50,2:20,3:30", qos.Rates{7: 2000}, 0, map[int]float64{0: 40, 3: 20, 4: 16, 5: 24}},
	} {
		t.Run(x.name, func(t *testing.T) {
			n := sim.New(1)
			node := n.AddSwitch(&narrow{learning: learning{sockets: 2, where: map[eth.MAC]int{}}, rate: wire})
			a, b := newTwin(t, node, 0), newTwin(t, node, 1)
			e, err := qos.ParseClasses(x.classes, x.bandwidths)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.p.Scheduler.SetTraffic(0, port.TrafficOf(&e, x.rates.Bytes())); err != nil {
				t.Fatal(err)
			}
			for k, y := range a.peers {
				route := func(i int) frame.Route {
					return frame.Route{Src: [2]*twin{a, b}[i].peers[k].addr, Dst: [2]*twin{a, b}[1-i].peers[k].addr, SrcPort: 50000,
						SrcMAC: macOf(i, k), DstMAC: macOf(1-i, k), Priority: uint8(3 + k), VLAN: uint16(3+k) << 13}
				}
				y.connect(b.peers[k], route(0), route(1))
				if k == 0 && x.limit > 0 {
					if err := y.e.Limit(0, y.out, command.LimitQP{Rate: x.limit}); err != nil {
						t.Fatal(err)
					}
				}
				for range 15 {
					y.post()
				}
			}
			a.host.settle(0)
			n.Pass(5 * time.Millisecond)
			before := a.p.Counters().Sent
			during := 20 * time.Millisecond
			for _, want := range x.want {
				if want < 10 { // a turn of a small share is a larger part of it
					during = 50 * time.Millisecond
				}
			}
			n.Pass(during)
			for p, want := range x.want {
				if p == 0 {
					p = port.Untagged
				}
				frames, bytes := a.p.Counters().Sent[p].Packets-before[p].Packets, a.p.Counters().Sent[p].Bytes-before[p].Bytes
				share := 100 * float64(bytes) * 8 / during.Seconds() / wire
				t.Logf("priority %d: %.2f %% of the wire, in %d frames", p, share, frames)
				if share < want*.98 || share > want*1.02 {
					t.Errorf("priority %d has %.2f %% of the wire, want %.0f", p, share, want)
				}
			}
		})
	}
}
