package encap

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// numbered returns a packet of n bytes whose ICRC is for an identification, as a socket shows it.
func numbered(route *frame.Route, to ib.QPN, n int, id uint16) frame.In {
	o := packet(route, n)
	head := o.Head[frame.HeadRoom:o.HeadEnd]
	ib.BTH(head).Encode(ib.RCSendOnly, false, true, int(o.Pad), ib.PKeyDefault, to, 0x22)
	var e Encap
	e.port = eth.PortRoCEv2
	for i := range lrhLen {
		e.scratch[i] = 0xff
	}
	crc, k := e.seed(e.outer(&flow{route.Src, route.Dst, route.SrcPort, e.port}), len(head)+n+ib.ICRCLen, id, head, o.Payload)
	finish(&o, ib.ICRCUpdate(crc, o.Payload[k-len(head):]), n)
	return datagram(&o, 0)
}

func accepts(e *Encap, p frame.In) bool { return e.Open([]frame.In{p}) == 1 }

// acceptable returns the identifications with which e would accept the next packet of a sender. A corrupt packet
// is accepted with probability 2^-32 for each.
func acceptable(e *Encap, route *frame.Route, to ib.QPN) (ids []uint16) {
	probe := numbered(route, to, 0, 0)
	e.ids.init()
	sender, flow, all := *e.ids.sender(&probe), *e.ids.flow(&probe), e.ids.all
	for id := range 1 << 16 {
		if accepts(e, numbered(route, to, 0, uint16(id))) {
			ids = append(ids, uint16(id))
		}
		// As it was without this packet.
		*e.ids.sender(&probe), *e.ids.flow(&probe), e.ids.all, e.nextID = sender, flow, all, 0
	}
	return ids
}

// TestFewIdentificationsAreAcceptable (IBA annex A17: the ICRC covers the identification): of a sender whose
// identifications are known those that may come next are accepted, of one that has used up its open guesses the
// places in a burst, and no others.
func TestFewIdentificationsAreAcceptable(t *testing.T) {
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	e := open(t, RoCEv2, socket, v4b)
	e.Tick(1)
	if got := len(acceptable(e, r, 0x11)); got != 1<<16 {
		t.Errorf("%d identifications are acceptable in the first packet of a sender, want any", got)
	}
	if !accepts(e, numbered(r, 0x11, 64, 40000)) {
		t.Fatal("the first packet was refused")
	}
	for range guessesEach {
		p := numbered(r, 0x11, 64, 40000)
		p.Data[20] ^= 0xff // no identification explains it, most likely
		if accepts(e, p) {
			t.Fatal("a corrupt packet was accepted")
		}
	}
	for _, c := range []struct {
		to      ib.QPN
		after   time.Duration
		first   uint16
		ahead   int
		message string
	}{
		{0x11, 0, 40000 - nearBehind, nearAhead, "at once"},
		{0x12, 0, 40000 - nearBehind, nearAhead, "to another queue pair"},
		{0x11, 200 * time.Millisecond, 40000 - nearBehind, nearAhead + 200, "after 0.2 s"},
		{0x11, 900 * time.Millisecond, 40000 - nearBehind, nearAhead + 900, "after 0.9 s"},
	} {
		e.Tick(clock.Time(1 + c.after))
		got := acceptable(e, r, c.to)
		places, others := got[:min(segmentsKept, len(got))], got[min(segmentsKept, len(got)):]
		if want := nearBehind + 1 + c.ahead; len(others) != want || others[0] != c.first || places[len(places)-1] != segmentsKept-1 {
			t.Errorf("%s %d identifications are acceptable, want %d places and %d others from %d on", c.message, len(got), segmentsKept,
				want, c.first)
		}
	}
	e.Tick(clock.Time(time.Hour))
	for range guessesEach {
		p := numbered(r, 0x11, 64, 40000)
		p.Data[20] ^= 0xff
		e.Open([]frame.In{p})
	}
	if got := len(acceptable(e, r, 0x11)); got != segmentsKept+nearBehind+1+nearAhead+nearMost {
		t.Errorf("after an hour %d identifications are acceptable", got)
	}
}

// TestRandomPacketsAreRefused: of random packets, whose ICRC is correct for some identification in one of 65,536,
// none is accepted: 2^-32 for each identification that a sender may have used, and few open guesses.
func TestRandomPacketsAreRefused(t *testing.T) {
	const packets = 1 << 20
	random := rand.New(rand.NewPCG(1, 2))
	e := open(t, RoCEv2, socket, v4b)
	if !accepts(e, numbered(&frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}, 0x11, 64, 40000)) {
		t.Fatal("the first packet was refused")
	}
	in := make([]frame.In, 1)
	data := make([]byte, 48)
	for i := range packets {
		e.Tick(clock.Time(i) * clock.Time(time.Microsecond))
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		src := v4a
		if i%2 == 0 {
			src = netip.AddrFrom4([4]byte{10, byte(random.Uint32()), byte(random.Uint32()), 1})
		}
		in[0] = frame.In{Data: data, Src: src, Dst: v4b, SrcPort: 0xc000}
		if e.Open(in) != 0 {
			t.Fatalf("packet %d was accepted: %+v", i, e.Counters())
		}
	}
	c := e.Counters()
	if c.ICRCErrors != packets || c.ICRCIDRefused == 0 {
		t.Errorf("counters %+v, want all as ICRC errors, and those that an identification would explain", c)
	}
	t.Logf("%d of %d random packets have an ICRC that some identification explains", c.ICRCIDRefused, packets)
}

// TestOpenGuessesAreLimited: a sender has guessesEach open guesses and then one a second, all of them together
// guessesAll. A sender that has none left and jumps loses one packet.
func TestOpenGuessesAreLimited(t *testing.T) {
	e := open(t, RoCEv2, socket, v4b)
	route := func(i int) *frame.Route {
		return &frame.Route{Src: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), Dst: v4b, SrcPort: 0xc000}
	}
	id := uint16(1000)
	jump := func(sender int) bool { id += 2000; return accepts(e, numbered(route(sender), 0x11, 64, id)) }
	for i := range guessesEach {
		if !jump(0) {
			t.Fatalf("jump %d of a sender was refused", i)
		}
	}
	if jump(0) {
		t.Error("a sender has more open guesses than it should")
	}
	if id++; !accepts(e, numbered(route(0), 0x11, 64, id)) {
		t.Error("the second packet after a jump was refused")
	}
	e.Tick(clock.Time(guessesEachEvery))
	if !jump(0) || jump(0) {
		t.Error("a sender has not one more open guess after a second")
	}
	e.Tick(clock.Time(time.Hour))
	for i := range guessesAll {
		if !jump(i + 1) {
			t.Fatalf("the first packet of sender %d was refused", i)
		}
	}
	if jump(guessesAll + 1) {
		t.Error("all senders together have more open guesses than they should")
	}
	want := Counters{ICRCErrors: 3, ICRCIDRefused: 3, ICRCIDOpen: guessesEach + 1 + guessesAll,
		ICRCIDInferred: guessesEach + 2 + guessesAll}
	if e.Counters() != want {
		t.Errorf("counters %+v, want %+v", e.Counters(), want)
	}
}

// TestSendersAreTakenAsTheyNumber: senders that count for each destination, as Linux Soft-RoCE does (by one and a random
// number up to the milliseconds that have passed), for each queue pair, or not at all, are accepted. Each open guess is
// for a first packet.
func TestSendersAreTakenAsTheyNumber(t *testing.T) {
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	random := rand.New(rand.NewPCG(3, 4))
	const queuePairs = 8
	for _, c := range []struct {
		name    string
		next    func(id *[queuePairs]uint16, qp int, idle time.Duration) uint16
		guesses uint64
	}{
		{"for each destination", func(id *[queuePairs]uint16, _ int, idle time.Duration) uint16 {
			id[0] += 1 + uint16(random.Int64N(1+int64(idle/time.Millisecond)))
			return id[0]
		}, 1},
		{"for each queue pair", func(id *[queuePairs]uint16, qp int, _ time.Duration) uint16 {
			id[qp]++
			return id[qp] + uint16(qp)*5000
		}, queuePairs},
		{"not at all", func(*[queuePairs]uint16, int, time.Duration) uint16 { return 0 }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := open(t, RoCEv2, socket, v4b)
			ids := [queuePairs]uint16{}
			for i := range ids {
				ids[i] = 65000
			}
			now := clock.Time(0)
			for i := range 3000 {
				// A packet with identification 0 says nothing of its sender's numbering: two gaps in a row may lie between
				// packets that do, and must be within nearMost.
				idle := time.Duration(random.Int64N(int64(512 * time.Millisecond)))
				now = now.Add(idle)
				e.Tick(now)
				qp := i % queuePairs
				if id := c.next(&ids, qp, idle); !accepts(e, numbered(r, ib.QPN(0x11+qp), 1024*(i%2), id)) {
					t.Fatalf("packet %d with identification %d was refused: %+v", i, id, e.Counters())
				}
			}
			if got := e.Counters().ICRCIDOpen; got != c.guesses {
				t.Errorf("%d open guesses, want %d", got, c.guesses)
			}
		})
	}
}

// TestCountingPastWhatEverySenderHas: a sender that comes past the identifications which every sender has is followed
// there too, so that its next packet is near the one before.
func TestCountingPastWhatEverySenderHas(t *testing.T) {
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	e := open(t, RoCEv2, socket, v4b)
	for i, id := range []uint16{64600, 65335, 30, 1031} { // each up to a second after the one before
		e.Tick(clock.Time(i) * clock.Time(time.Second))
		if !accepts(e, numbered(r, 0x11, 0, id)) {
			t.Errorf("identification %d was refused", id)
		}
	}
	if got := e.Counters().ICRCIDOpen; got != 1 {
		t.Errorf("%d open guesses, want 1: for the first packet", got)
	}
}

// TestIdentificationSeen: of a packet that came as a frame the identification is known, and no other is accepted but 0,
// with which some senders compute the ICRC. It says where the sender counts.
func TestIdentificationSeen(t *testing.T) {
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	e := open(t, RoCEv2, socket, v4b)
	for _, c := range []struct {
		made, shown uint16
		want        bool
	}{{30000, 30000, true}, {0, 30001, true}, {30001, 30002, false}, {1, 30002, false}, {40000, 0, false}} {
		p := numbered(r, 0x11, 64, c.made)
		p.Segment, p.IDSeen = c.shown, true
		if accepts(e, p) != c.want {
			t.Errorf("ICRC for %d in a packet with identification %d: accepted %v", c.made, c.shown, !c.want)
		}
	}
	if !accepts(e, numbered(r, 0x12, 1024, 30003)) || e.Counters().ICRCIDOpen != 0 {
		t.Errorf("the long packet after a short one needed an open guess: %+v", e.Counters())
	}
}

// BenchmarkOpenNumbered measures the receiver of packets of a sender that numbers them.
func BenchmarkOpenNumbered(b *testing.B) {
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	e := open(b, RoCEv2, socket, v4b)
	kept := make([]frame.In, 16)
	for i := range kept {
		kept[i] = numbered(r, 0x11, 1024, 40000+uint16(i))
	}
	in := make([]frame.In, len(kept))
	for b.Loop() {
		copy(in, kept)
		if e.Open(in) != len(in) {
			b.Fatal(e.Counters())
		}
	}
}
