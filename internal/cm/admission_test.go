package cm

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestRefusalsAreLimited: a peer that fills the backlog alone is told that there is no room, but not more than some
// times a second.
func TestRefusalsAreLimited(t *testing.T) {
	f := newFlooded(t, 4, 512, 1)
	from := netip.MustParseAddr("10.0.0.9")
	for range 3000 {
		f.flood(from)
		f.exchange(0)
	}
	if f.sent != refusalsMost {
		t.Errorf("%d answers, want %d", f.sent, refusalsMost)
	}
	if k := f.e.Counters(); k.BacklogOverflow != 3000-4 || k.Unanswered != 3000-4-refusalsMost || k.FailedAttempts != refusalsMost {
		t.Errorf("counters %+v", *k)
	}
	f.pass(refusalsEvery)
	f.flood(from)
	f.exchange(0)
	if f.sent != refusalsMost+1 {
		t.Error("a second later no refusal is answered")
	}
}

// TestBacklogIsShared: peers share a full backlog equally, and none displaces requests of another that has no more.
func TestBacklogIsShared(t *testing.T) {
	f := newFlooded(t, 12, 512, 1)
	peers := []netip.Addr{netip.MustParseAddr("10.0.0.11"), netip.MustParseAddr("10.0.0.12"), netip.MustParseAddr("10.0.0.13")}
	l := f.e.listener(command.TCP, f.at).listen
	has := func() (n []int) {
		for _, p := range peers {
			n = append(n, l.shares.of[p])
		}
		return n
	}
	for _, p := range peers {
		for range 20 {
			f.flood(p)
		}
	}
	if got := has(); !slices.Equal(got, []int{4, 4, 4}) || l.shares.most != 4 || len(l.waiting) != 12 {
		t.Errorf("the peers have %v of 12", got)
	}
	for range 20 {
		f.flood(peers[0])
	}
	if got := has(); !slices.Equal(got, []int{4, 4, 4}) {
		t.Errorf("the peers then have %v of 12", got)
	}
}

// TestAskingOftenTakesNoShare: a request that is repeated does not displace one of a peer that has no more, even if that one
// came first and once.
func TestAskingOftenTakesNoShare(t *testing.T) {
	f := newFlooded(t, 12, 512, 1)
	honest, a, b := address(12, 1), address(11, 1), address(11, 2)
	l := f.e.listener(command.TCP, f.at).listen
	f.flood(honest)
	for range 6 {
		f.flood(a)
	}
	for range 5 {
		f.flood(b)
	}
	m := f.request(b)
	for range 3 {
		f.deliver(b, m)
	}
	if l.shares.of[honest] != 1 || l.shares.of[a] != 5 || l.shares.of[b] != 6 {
		t.Errorf("the peers have %v", l.shares.of)
	}
	m = f.request(b)
	for range 3 {
		f.deliver(b, m)
	}
	if l.shares.of[honest] != 1 || l.shares.of[b] != 6 {
		t.Errorf("the peer with most has displaced another's: %v", l.shares.of)
	}
}

// TestDisplacedRequestMayBeRepeated: a peer without more than its share that loses its place is not refused, and what it
// repeats has a place and keeps it; so has one that repeats its request while it waits.
func TestDisplacedRequestMayBeRepeated(t *testing.T) {
	f := newFlooded(t, 2, 512, 1)
	l := f.e.listener(command.TCP, f.at).listen
	peers, requests := [5]netip.Addr{}, [5]*mad.REQ{}
	for i := range peers {
		peers[i] = address(12, uint32(i))
		requests[i] = f.request(peers[i])
	}
	ask := func(i int) { f.deliver(peers[i], requests[i]) }
	want := func(has ...int) {
		t.Helper()
		if l.shares.of[peers[has[0]]] != 1 || l.shares.of[peers[has[1]]] != 1 || len(l.shares.of) != 2 {
			t.Errorf("waiting: %v, want peers %v", l.shares.of, has)
		}
	}
	ask(0)
	ask(1)
	ask(1) // while it waits
	ask(2)
	want(0, 1)
	ask(2)
	want(1, 2) // in place of 0, which came once
	ask(3)
	ask(3)
	want(1, 2)
	f.exchange(0)
	if k := f.e.Counters(); k.Displaced != 1 || f.sent != 1 { // the MRA for the request that was repeated
		t.Errorf("%d answers, counters %+v", f.sent, *k)
	}
	if err := f.e.Claim(f.waitingOf(peers[1])); err != nil {
		t.Fatal(err)
	}
	ask(4)
	want(2, 4)
	ask(0)
	want(0, 2) // it was displaced, and comes again
}

// TestOneRequestIsNotRefused: a peer's only request that loses the only place is not refused either.
func TestOneRequestIsNotRefused(t *testing.T) {
	f := newFlooded(t, 1, 512, 1)
	other := address(12, 2)
	m := f.request(other)
	f.flood(address(12, 1))
	f.deliver(other, m)
	f.deliver(other, m)
	f.exchange(0)
	if f.sent != 0 || f.waitingOf(other) == 0 {
		t.Errorf("%d answers, counters %+v", f.sent, *f.e.Counters())
	}
}

// waitingOf returns a peer's request.
func (f *flooded) waitingOf(peer netip.Addr) ID {
	for id, c := range f.e.listener(command.TCP, f.at).listen.waiting {
		if c.at.Remote == peer {
			return id
		}
	}
	return 0
}

// TestPeersThatDoNotAnswerMakeRoom: connections whose peers leave REP unanswered for silentAfter make room for requests that
// are repeated, those that were not repeated and those that were, but not before.
func TestPeersThatDoNotAnswerMakeRoom(t *testing.T) {
	f := newFlooded(t, 128, 4, 1)
	for n := range uint32(4) {
		f.flood(address(11, n))
	}
	f.exchange(8)
	m := f.request(address(12, 1))
	ask := func() bool {
		f.deliver(address(12, 1), m)
		return f.e.half.of[address(12, 1)] == 1
	}
	ask()
	f.pass(silentAfter - 1)
	if ask() || f.e.Counters().Displaced != 0 {
		t.Error("a connection made room before its peer had time to answer")
	}
	f.pass(1)
	if !ask() || f.e.Counters().Displaced != 1 {
		t.Errorf("no connection made room: %+v", *f.e.Counters())
	}
}

// TestFewAreTakenForRepeated: in a flood, a request that comes again within askedEvery is known, and one in
// 300 others at most is taken for one.
func TestFewAreTakenForRepeated(t *testing.T) {
	const rate = 47000
	random := rand.New(rand.NewPCG(1, 2))
	var a asked
	var now clock.Time
	wrong := 0
	first := request{address(12, 1), 1, 2, 3}
	a.again(now, &first, random.Uint64)
	for n := range uint32(12 * rate) {
		now = now.Add(time.Second / rate)
		if a.again(now, &request{address(11, n), 0xbad, random.Uint32(), random.Uint64()}, random.Uint64) {
			wrong++
		}
		if n == 6*rate-1 && !a.again(now, &first, random.Uint64) {
			t.Error("a request that is repeated is not known")
		}
	}
	if wrong > 12*rate/300 {
		t.Errorf("%d of %d requests were taken for repeated ones", wrong, 12*rate)
	}
	t.Logf("%d of %d requests were taken for repeated ones", wrong, 12*rate)
}
