package port

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// card is an Ethernet function: it sends frames as they are, and keeps what it receives.
type card struct {
	queues
	send []frame.In // Data and Task are used
	head int        // bytes of a frame that go to an Out's Head; 0: the Ethernet header
	in   []frame.In
	// whole says that frames are handed out in one piece, whose memory is used again by the next Transmit.
	whole  bool
	handed [][]byte
}

func (c *card) Receive(_ clock.Time, in []frame.In) { c.in = append(c.in, in...) }

func (c *card) Pending() uint8 {
	if len(c.send) > 0 {
		return 1
	}
	return 0
}

func (c *card) Transmit(_ clock.Time, _ uint8, out []frame.Out) (n int) {
	for _, b := range c.handed {
		clear(b)
	}
	c.handed = nil
	for ; n < len(out) && len(c.send) > 0; n++ {
		o, b := &out[n], c.send[0]
		o.Reset(&frame.Route{})
		k := min(cmp.Or(c.head, eth.EthernetLen), len(b.Data))
		o.HeadStart, o.HeadEnd = 64, 64+uint16(k)
		copy(o.Head[64:], b.Data[:k])
		o.Payload, o.Task = b.Data[k:], b.Task
		if c.whole {
			o.Staged, c.handed = b.Data, append(c.handed, b.Data)
		}
		c.send = c.send[1:]
	}
	return n
}

// cardOn attaches an Ethernet function.
func cardOn(p *Port, w *Wire, s Station) (*card, *Station) {
	c := &card{queues: queues{due: clock.Never}}
	s.Kind = Ethernet
	at := p.Attach(c, s)
	at.Plug(w, netip.Addr{}, nil)
	return c, at
}

func ethernetTo(dst eth.MAC, vlan uint16, n int) []byte {
	h := eth.Ethernet{Dst: dst, Src: eth.MAC{2, 0, 0, 0, 0, 0x99}, Tagged: vlan != 0, TCI: vlan, Type: eth.TypeARP}
	return append(h.Append(nil), make([]byte, n)...)
}

// TestReceive_EthernetStations: an Ethernet station takes frames to its MAC of every VLAN, RoCE to it if no RDMA function is
// there, and those to nobody's MAC if it is promiscuous; RoCE to a group is not for it where there are RDMA functions.
func TestReceive_EthernetStations(t *testing.T) {
	var p, far Port
	w := &Wire{}
	a, _ := cardOn(&p, w, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 1}})
	b, at := cardOn(&p, w, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 2}, Promiscuous: true})
	x := stationOn(t, &far, &Wire{}, 9, 0)
	y := &station{addr: netip.MustParseAddr("192.0.2.1"), s: &Station{MAC: eth.MAC{2, 0, 0, 0, 0, 1}}}
	arrive(&p, w, x.e, x.to(y), "roce")
	for _, vlan := range []uint16{0, 5} {
		p.Receive(0, w, []frame.In{{Data: ethernetTo(eth.MAC{2, 0, 0, 0, 0, 1}, vlan, 46), Raw: true}})
	}
	p.Receive(0, w, []frame.In{{Data: ethernetTo(eth.MAC{2, 0, 0, 0, 0, 7}, 0, 46), Raw: true}})
	if len(a.in) != 3 || len(b.in) != 1 {
		t.Fatalf("%d frames for the station and %d for the promiscuous one, want 3 and 1", len(a.in), len(b.in))
	}
	rdma := stationOn(t, &p, w, 3, 0)
	group := x.to(rdma)
	group.DstMAC = eth.Broadcast
	arrive(&p, w, x.e, group, "all.")
	if len(a.in) != 3 || len(rdma.got) != 1 {
		t.Errorf("RoCE to everybody: %d frames for the Ethernet function, %q for RDMA", len(a.in)-3, rdma.got)
	}
	rdma.s.Switch(false)
	arrive(&p, w, x.e, group, "all.")
	if a.in = a.in[:min(3, len(a.in))]; len(b.in) != 2 || len(rdma.got) != 1 {
		t.Errorf("RoCE to everybody while the RDMA function is off: %d frames for the Ethernet functions, %q for RDMA", len(b.in)-1, rdma.got)
	}
	b.in = b.in[:1]
	rdma.s.Switch(true)
	at.Promiscuous = false
	stray := []frame.In{
		{Data: ethernetTo(eth.Broadcast, 0, 46), Raw: true}, {Data: ethernetTo(eth.MAC{2, 0, 0, 0, 0, 7}, 0, 46), Raw: true}}
	p.Receive(0, w, stray)
	if len(a.in) != 4 || len(b.in) != 2 || p.Counters().Unclaimed != 1 {
		t.Errorf("a broadcast and a frame for nobody: %d and %d frames, %d for nobody", len(a.in)-3, len(b.in)-1, p.Counters().Unclaimed)
	}
}

// TestTransmit_LargeInside: a frame to another Ethernet function of the port goes there as it is, with what is left to do; a
// wire says whether it takes such frames.
func TestTransmit_LargeInside(t *testing.T) {
	var p Port
	w := &Wire{}
	a, at := cardOn(&p, w, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 1}, Carried: &Carried{}})
	b, _ := cardOn(&p, w, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 2}})
	there, away := eth.MAC{2, 0, 0, 0, 0, 2}, eth.MAC{2, 0, 0, 0, 0, 3}
	if !at.TakesLarge(there, 0) || at.TakesLarge(away, 0) || at.TakesLarge(eth.Broadcast, 0) ||
		at.TakesLarge(eth.MAC{2, 0, 0, 0, 0, 1}, 0) {
		t.Error("large frames are not for other functions alone")
	}
	task := offload.Task{Kind: offload.TCPv4, Segment: 1000, Sums: offload.MakeTransport}
	a.send = []frame.In{{Data: ethernetTo(there, 0, 60000), Task: task}, {Data: ethernetTo(away, 0, 46)}}
	var out [4]frame.Out
	n := p.Transmit(0, out[:])
	p.Advance(0)
	if n != 2 || !out[0].Inside || out[1].Inside || len(b.in) != 1 || len(b.in[0].Data) != 60014 || b.in[0].Task != task {
		t.Errorf("%d frames, %d of them inside: %d", n, len(b.in), len(b.in[0].Data))
	}
	if c := p.Counters(); c.Sent[Untagged] != (Tally{1, 60}) { // what stays inside is on no wire
		t.Errorf("%+v is counted", c.Sent[Untagged])
	}
	if c := at.Carried; c.Wire.SentFrames != 1 || c.Wire.SentBytes != 60 || c.Inside.SentFrames != 1 { // its data is no TCP: one frame
		t.Errorf("carried %+v", *c)
	}
	if w.Shown = true; at.TakesLarge(there, 0) {
		t.Error("a large frame that somebody is shown is not one as on a wire")
	}
	if w.Large = true; !at.TakesLarge(away, 0) || !at.TakesLarge(eth.Broadcast, 0) {
		t.Error("the wire takes large frames, the station does not")
	}
}

// sight is a card that keeps the bytes of what it receives, as they were then.
type sight struct {
	card
	seen  []string
	where []*byte
}

func (s *sight) Receive(_ clock.Time, in []frame.In) {
	for i := range in {
		s.seen = append(s.seen, string(in[i].Data[eth.EthernetLen:]))
		s.where = append(s.where, &in[i].Data[0])
	}
}

// TestTransmit_InsideInOnePiece: a frame that its function has in one piece goes to another function of the port as it is there,
// before its function is asked for more and uses the memory again, and behind what was sent before it, however that was.
func TestTransmit_InsideInOnePiece(t *testing.T) {
	var p Port
	w := &Wire{}
	from, _ := cardOn(&p, w, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 1}})
	to := &sight{card: card{queues: queues{due: clock.Never}}}
	p.Attach(to, Station{MAC: eth.MAC{2, 0, 0, 0, 0, 2}, Kind: Ethernet}).Plug(w, netip.Addr{}, nil)
	var want []string
	var mine []*byte
	send := func(whole bool, text ...string) {
		from.whole = whole
		for _, x := range text {
			b := append(ethernetTo(eth.MAC{2, 0, 0, 0, 0, 2}, 0, 0), x...)
			from.send = append(from.send, frame.In{Data: b})
			want, mine = append(want, x), append(mine, &b[0])
		}
	}
	var out [2]frame.Out
	send(false, "copied", "too")
	p.Transmit(0, out[:])
	send(true, "in one piece", "another", "of the next turn")
	p.Transmit(0, out[:])
	if len(to.seen) != 0 {
		t.Errorf("%q were delivered while their memory was nobody else's", to.seen)
	}
	p.Transmit(0, out[:]) // takes the memory of the first two
	if len(to.seen) != 4 {
		t.Errorf("%q were delivered before their function was asked for more", to.seen)
	}
	p.Advance(0)
	if !slices.Equal(to.seen, want) {
		t.Errorf("%q are delivered, want %q", to.seen, want)
	}
	for i := range to.where {
		if same := to.where[i] == mine[i]; same != (i >= 2) {
			t.Errorf("%q: delivered where its function has it: %v", want[i], same)
		}
	}
}
