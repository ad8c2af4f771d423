package sim

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/wire/ib"
)

// actor is an engine that sends packets to others at times of its own and in answer to what arrives, and writes down
// every call with what it brings.
type actor struct {
	random *rand.Rand
	self   netip.Addr
	peers  []netip.Addr
	left   int // packets to send
	due    []clock.Time
	routes [256]frame.Route
	log    []string
	got    int
	moody  bool // it asks for another turn now and then
	again  bool
}

func (a *actor) note(format string, v ...any) { a.log = append(a.log, fmt.Sprintf(format, v...)) }

// plan makes the actor send a packet after a time.
func (a *actor) plan(now clock.Time) {
	if a.left > 0 {
		a.left--
		a.due = append(a.due, now.Add(time.Duration(a.random.IntN(4)*a.random.IntN(5000))))
	}
}

func (a *actor) Receive(now clock.Time, in []frame.In) {
	a.note("%d: %d packets", now, len(in))
	for i := range in {
		x := &in[i]
		h := fnv.New64()
		head := min(len(x.Data), ib.BTHLen)
		h.Write(x.Data[:head])
		h.Write(x.Payload)
		h.Write(x.Data[head:])
		a.note("%v %v %d %d %d %x", x.Src, x.Dst, x.SrcPort, x.TrafficClass, len(x.Data)+len(x.Payload), h.Sum64())
		a.got++
		for range a.random.IntN(3) {
			a.plan(now)
		}
	}
}

func (a *actor) Advance(now clock.Time) {
	a.note("%d: advance", now)
	if a.random.IntN(4) == 0 {
		a.plan(now)
	}
}

func (a *actor) Transmit(now clock.Time, out []frame.Out) (n int) {
	for i := 0; i < len(a.due) && n < len(out); {
		if a.due[i] > now {
			i++
			continue
		}
		a.due = slices.Delete(a.due, i, i+1)
		a.routes[n] = frame.Route{Src: a.self, Dst: a.peers[a.random.IntN(len(a.peers))], SrcPort: 9, TrafficClass: 2}
		o := &out[n]
		o.Reset(&a.routes[n])
		h := ib.BTH(o.Head[frame.HeadRoom:])
		h[0] = byte(ib.RCWriteMiddle)
		binary.BigEndian.PutUint32(h[4:], a.random.Uint32())
		o.HeadEnd = frame.HeadRoom + ib.BTHLen
		o.Payload = filler[:a.random.IntN(len(filler))]
		n++
	}
	a.note("%d: %d sent", now, n)
	a.again = a.moody && n > 0 && a.random.IntN(3) == 0
	return n
}

func (a *actor) Deadline() clock.Time { return slices.Min(append(a.due, clock.Never)) }

func (a *actor) Pending() bool { return a.again }

var filler = make([]byte, 1024)

// hub is a switch that passes each packet on to the next socket after a while.
type hub struct {
	sockets int
	waiting []parcel
}

type parcel struct {
	at     clock.Time
	socket int
	data   []byte
}

func (h *hub) Accept(now clock.Time, socket int, packet []byte) bool {
	h.waiting = append(h.waiting, parcel{now.Add(300), (socket + 1) % h.sockets, slices.Clone(packet)})
	return true
}

func (h *hub) Collect(now clock.Time) (socket int, packet []byte, ok bool) {
	if len(h.waiting) == 0 || h.waiting[0].at > now {
		return 0, nil, false
	}
	p := h.waiting[0]
	h.waiting = h.waiting[1:]
	return p.socket, p.data, true
}

func (h *hub) Room() (socket int, ok bool) { return 0, false }
func (h *hub) Advance(clock.Time)          {}
func (h *hub) Deadline() clock.Time {
	if len(h.waiting) == 0 {
		return clock.Never
	}
	return h.waiting[0].at
}

// scene is a network with what happens to it, drawn once and played in several orders.
type scene struct {
	seed    uint64
	base    impair.Impairment
	closed  bool
	ports   []part
	links   []cable
	plugged int // ports at a switch
	acts    []act
}

type part struct {
	apart, lends, moody bool
	rate                uint64
	batch, packets      int
}

type cable struct {
	from, to int
	set      impair.Impairment
	queue    int
}

// act is one thing that the program does to the network between runs.
type act struct {
	kind, port, link int
	pass             time.Duration
	set              impair.Impairment
}

func drawImpairment(t *rapid.T, least time.Duration) impair.Impairment {
	share := func(name string) float64 { return rapid.SampledFrom([]float64{0, 0, 0, 0.1, 0.4}).Draw(t, name) }
	return impair.Impairment{Loss: share("loss"), Duplicate: share("duplicate"), Reorder: share("reorder"), Corrupt: share("corrupt"),
		ECN: share("mark"), Delay: least + time.Duration(rapid.SampledFrom([]int{0, 100, 1000, 1001, 5000}).Draw(t, "delay")),
		Jitter:    time.Duration(rapid.SampledFrom([]int{0, 0, 50, 2000}).Draw(t, "jitter")),
		ReorderBy: time.Duration(rapid.SampledFrom([]int{0, 3000}).Draw(t, "reorder by")),
		Rate:      rapid.SampledFrom([]uint64{0, 0, 1e9, 20e9}).Draw(t, "rate"), Seed: rapid.Uint64Range(0, 2).Draw(t, "seed")}
}

func drawScene(t *rapid.T) *scene {
	least := time.Duration(rapid.SampledFrom([]int{0, 1, 700, 2001}).Draw(t, "least delay"))
	s := &scene{seed: rapid.Uint64().Draw(t, "seed"), base: drawImpairment(t, least), closed: rapid.Bool().Draw(t, "closed"),
		plugged: rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "plugged")}
	for range rapid.IntRange(2, 24).Draw(t, "ports") {
		s.ports = append(s.ports, part{apart: rapid.IntRange(0, 5).Draw(t, "apart") > 0, lends: rapid.Bool().Draw(t, "lends"),
			moody: rapid.Bool().Draw(t, "moody"), rate: rapid.SampledFrom([]uint64{0, 0, 10e9}).Draw(t, "port rate"),
			batch: rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "batch"), packets: rapid.IntRange(0, 100).Draw(t, "packets")})
	}
	port := rapid.IntRange(0, len(s.ports)-1)
	for range rapid.IntRange(1, 3*len(s.ports)).Draw(t, "links") {
		s.links = append(s.links, cable{port.Draw(t, "from"), port.Draw(t, "to"), drawImpairment(t, least),
			rapid.SampledFrom([]int{0, 0, 4000}).Draw(t, "queue")})
	}
	for range rapid.IntRange(1, 8).Draw(t, "acts") {
		s.acts = append(s.acts, act{rapid.IntRange(0, 5).Draw(t, "act"), port.Draw(t, "port"),
			rapid.IntRange(0, len(s.links)-1).Draw(t, "link"),
			time.Duration(rapid.SampledFrom([]int{0, 100, 3000, 50_000, 1_000_000}).Draw(t, "time")), drawImpairment(t, least)})
	}
	return s
}

// play returns what the ports of a scene have seen, and whether windows were wider than an instant.
func (s *scene) play(apart, instants bool) (logs [][]string, wide bool) {
	n := New(s.seed)
	n.Default, n.Closed = s.base, s.closed
	if instants {
		n.Tap = func(clock.Time, *Port, *Port, []byte) {}
	}
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }
	var actors []*actor
	var ports []*Port
	engine := func(x part) *actor {
		i := len(actors)
		a := &actor{random: rand.New(rand.NewPCG(s.seed, uint64(i))), self: addr(i), left: x.packets, moody: x.moody}
		actors = append(actors, a)
		for range min(3, x.packets) {
			a.plan(0)
		}
		return a
	}
	for i, x := range s.ports {
		add := n.Add
		if apart && x.apart {
			add = n.AddApart
		}
		p := add(addr(i), engine(x))
		p.Lends, p.Rate, p.Batch = x.lends, x.rate, x.batch
		ports = append(ports, p)
	}
	if s.plugged > 0 {
		node := n.AddSwitch(&hub{sockets: s.plugged})
		for i := range s.plugged {
			p := node.Plug(i, addr(len(actors)), engine(part{packets: 20}))
			p.Engine.(*actor).peers = []netip.Addr{addr(0)}
		}
	}
	for _, x := range s.links {
		l := n.Link(ports[x.from], ports[x.to])
		l.Set(x.set)
		l.Queue = x.queue
	}
	for i := range s.ports {
		for j := range s.ports {
			if i != j || len(s.ports) < 4 {
				actors[i].peers = append(actors[i].peers, addr(j))
			}
		}
		actors[i].peers = append(actors[i].peers, addr(200), netip.MustParseAddr("239.0.0.1"))
	}
	for _, x := range s.links { // most packets go where links are
		for range 10 {
			actors[x.from].peers = append(actors[x.from].peers, addr(x.to))
		}
	}
	for _, x := range s.acts {
		p, a := ports[x.port], actors[x.port]
		switch x.kind {
		case 0:
			a.plan(n.Now())
			p.Wake()
		case 1:
			n.Inject(p, netip.AddrPortFrom(addr(77), 5), n.Now().Add(x.pass/7), []byte("from elsewhere, thirty bytes.."))
		case 2:
			n.Link(ports[s.links[x.link].from], ports[s.links[x.link].to]).Set(x.set)
		case 3:
			most := a.got + 5
			n.Run(n.Now().Add(x.pass), func() bool { return a.got >= most })
			n.Pass(x.pass)
		default:
			a.left += 5
			a.plan(n.Now()) // without a wake: Pass asks for deadlines
		}
		n.Pass(x.pass)
		wide = wide || n.window.end > n.window.begin
		actors[0].note("at %d: %+v", n.Now(), n.Stats)
	}
	n.Run(clock.Never-1, nil)
	wide = wide || n.window.end > n.window.begin
	actors[0].note("at the end, %d: %+v", n.Now(), n.Stats)
	for _, a := range actors {
		logs = append(logs, a.log)
	}
	return logs, wide
}

// TestWindows_SameAsStrictOrder: whatever network it is, ports see the same calls, packets and times whether all take their
// turns in strict order, or some of them apart, in windows or instant by instant.
func TestWindows_SameAsStrictOrder(t *testing.T) {
	inWindows, calls := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		want, _ := s.play(false, false)
		for _, instants := range []bool{true, false} {
			got, wide := s.play(true, instants)
			if wide && instants {
				t.Fatal("there are windows though somebody sees every packet")
			}
			if wide {
				inWindows++
			}
			for i := range want {
				calls += len(want[i])
				for k := range min(len(want[i]), len(got[i])) {
					if want[i][k] != got[i][k] {
						t.Fatalf("instants %v: port %d, line %d:\n%s\nwant\n%s", instants, i, k, got[i][k], want[i][k])
					}
				}
				if len(want[i]) != len(got[i]) {
					t.Fatalf("instants %v: port %d has %d lines, want %d", instants, i, len(got[i]), len(want[i]))
				}
			}
		}
	})
	if !t.Failed() && inWindows == 0 {
		t.Error("no network ran in windows")
	}
	t.Logf("%d networks ran in windows; %d lines compared", inWindows, calls)
}
