package device

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// keeping is an adapter whose program polls, with batches of packets that the test makes.
type keeping struct {
	*adapter
	routes [2]frame.Route
}

func newKeeping() *keeping {
	k := &keeping{adapter: &adapter{host: &Host{}}}
	k.batch.init()
	return k
}

// made puts packets into the adapter's output as the engine does and returns their number.
func (k *keeping) made(packets ...made) int {
	for i, p := range packets {
		o := &k.out[i]
		o.Reset(&k.routes[p.route])
		h := ib.BTH(o.Head[frame.HeadRoom:])
		h.Encode(p.op, false, false, 0, 0xffff, 7, p.psn)
		ib.AETH(o.Head[frame.HeadRoom+ib.BTHLen:]).Encode(p.syndrome, 1)
		o.HeadEnd += ib.BTHLen + ib.AETHLen
	}
	return len(packets)
}

type made struct {
	op       ib.Opcode
	psn      ib.PSN
	syndrome ib.Syndrome
	route    int
}

func (k *keeping) psns(n int) (all []ib.PSN) {
	for i := range k.out[:n] {
		all = append(all, ib.BTH(k.out[i].Head[frame.HeadRoom:]).PSN())
	}
	return all
}

const positive = ib.Syndrome(0x1f) // without credits

// turn is what happens at a time, in microseconds after the start: what the engine made, and what must be sent.
type turn struct {
	at   int
	made []made
	want []ib.PSN
	idle bool // nothing came to any adapter
}

// TestKeptAcknowledgements: an acknowledgement is held back behind the answer to the message it acknowledges, until
// the next message, whose acknowledgement covers both, or until its time is over.
func TestKeptAcknowledgements(t *testing.T) {
	answer := func(psn ib.PSN) made { return made{op: ib.RCSendOnly, psn: psn} }
	ack := func(psn ib.PSN) made { return made{op: ib.RCAcknowledge, psn: psn, syndrome: positive} }
	both := func(a, b ib.PSN) []made { return []made{answer(a), ack(b)} }
	keep := int(keepTime / time.Microsecond)
	most := int(keepMost / time.Microsecond)
	late := int(keepLate/time.Microsecond) + 1
	row := func() (all []turn) { // a message each microsecond
		for i := range keepRow {
			all = append(all, turn{at: i, made: both(ib.PSN(i), ib.PSN(100+i)), want: []ib.PSN{ib.PSN(i)}})
		}
		return all
	}
	inVain := func() []turn {
		return []turn{
			{at: 0, made: both(1, 101), want: []ib.PSN{1}}, {at: keep, want: []ib.PSN{101}},
			{at: 100, made: both(2, 102), want: []ib.PSN{2}}, {at: 100 + keep, want: []ib.PSN{102}},
		}
	}
	for _, c := range []struct {
		name  string
		turns []turn
	}{
		{"it leaves alone in the end", []turn{{at: 0, made: both(1, 101), want: []ib.PSN{1}}, {at: keep - 1}, {at: keep, want: []ib.PSN{101}}, {at: keep + 1}}},
		{"a later one tells as much", []turn{{at: 0, made: both(1, 101), want: []ib.PSN{1}}, {at: 5, made: both(2, 102), want: []ib.PSN{2}}, {at: 5 + keep, want: []ib.PSN{102}}}},
		{"so does one that leaves by itself", []turn{{at: 0, made: both(1, 101), want: []ib.PSN{1}}, {at: 5, made: []made{ack(102)}, want: []ib.PSN{102}}, {at: 50}}},
		{"and a refusal", []turn{{at: 0, made: both(1, 101), want: []ib.PSN{1}}, {at: 5, made: []made{{op: ib.RCAcknowledge, psn: 102, syndrome: ib.NAKRemoteAccess}}, want: []ib.PSN{102}}, {at: 50}}},
		{"and the answer to a read", []turn{{at: 0, made: both(1, 101), want: []ib.PSN{1}}, {at: 5, made: []made{{op: ib.RCReadResponseOnly, psn: 102}}, want: []ib.PSN{102}}, {at: 50}}},
		{"it goes with other messages, behind them", []turn{{at: 0, made: both(1, 101), want: []ib.PSN{1}}, {at: 1, made: []made{answer(2), answer(3)}, want: []ib.PSN{2, 3, 101}}}},
		{"that of another queue pair tells nothing", []turn{{at: 0, made: both(1, 101), want: []ib.PSN{1}}, {at: 1, made: []made{{op: ib.RCAcknowledge, psn: 7, syndrome: positive, route: 1}}, want: []ib.PSN{7, 101}}}},
		{"they are not replaced for ever", []turn{{at: 0, made: both(1, 101), want: []ib.PSN{1}}, {at: 10, made: both(2, 102), want: []ib.PSN{2}}, {at: most + 1, made: both(3, 103), want: []ib.PSN{3, 103}}, {at: most + 9, made: both(4, 104), want: []ib.PSN{4}}}},
		{"nor for more messages than a short queue has room for", append(row(),
			turn{at: keepRow, made: both(50, 150), want: []ib.PSN{50, 150}}, turn{at: keepRow + 1, made: both(51, 151), want: []ib.PSN{51}})},
		{"a refusal does not wait", []turn{{at: 0, made: []made{answer(1), {op: ib.RCAcknowledge, psn: 101, syndrome: ib.NAKRemoteAccess}}, want: []ib.PSN{1, 101}}}},
		{"nor one before an answer to somebody else", []turn{{at: 0, made: []made{answer(1), {op: ib.RCAcknowledge, psn: 101, syndrome: positive, route: 1}}, want: []ib.PSN{1, 101}}}},
		{"nor one among many packets", []turn{{at: 0, made: []made{answer(1), ack(101), answer(2)}, want: []ib.PSN{1, 101, 2}}}},
		{"after two in vain they leave when nothing comes", append(inVain(),
			turn{at: 200, made: both(3, 103), want: []ib.PSN{3}}, turn{at: 201}, turn{at: 202, want: []ib.PSN{103}, idle: true}, turn{at: 203, idle: true})},
		{"or in their time, where something always comes", append(inVain(),
			turn{at: 200, made: both(3, 103), want: []ib.PSN{3}}, turn{at: 199 + keep}, turn{at: 200 + keep, want: []ib.PSN{103}})},
		{"or are told of by a later one", append(inVain(),
			turn{at: 200, made: both(3, 103), want: []ib.PSN{3}}, turn{at: 205, made: both(4, 104), want: []ib.PSN{4}}, turn{at: 206, want: []ib.PSN{104}, idle: true})},
		{"at once where nobody drove the loop", append(append(inVain(),
			turn{at: 200, made: both(3, 103), want: []ib.PSN{3}}, turn{at: 200 + late, want: []ib.PSN{103}, idle: true}),
			turn{at: 500, made: both(4, 104), want: []ib.PSN{4, 104}})},
	} {
		k := newKeeping()
		for i, x := range c.turns {
			now := clock.Time(time.Millisecond) + clock.Time(time.Duration(x.at)*time.Microsecond)
			k.host.drove = now
			if x.idle {
				k.keep.hurry(now)
			}
			k.queued = k.unkeep(now, k.made(x.made...))
			k.keepBack(now)
			got := k.psns(k.queued)
			if len(got) != len(x.want) {
				t.Fatalf("%s, turn %d: %v leave, want %v", c.name, i, got, x.want)
			}
			for j := range got {
				if got[j] != x.want[j] {
					t.Errorf("%s, turn %d: %v leave, want %v", c.name, i, got, x.want)
				}
			}
		}
	}
}

// TestAcknowledgementsOfOthersAreNotKept: if the program does not poll, its acknowledgements are sent at once.
func TestAcknowledgementsOfOthersAreNotKept(t *testing.T) {
	k := newKeeping()
	k.queued = k.made(made{op: ib.RCSendOnly, psn: 1}, made{op: ib.RCAcknowledge, psn: 101, syndrome: positive})
	k.host.drove = 0
	if k.keepBack(clock.Time(2 * pollingTime)); k.queued != 2 || k.keep.on {
		t.Error("the acknowledgement of a program that does not poll was held back")
	}
}

// TestAnswersOvertakeForThoseWhoPoll: an answer overtakes the acknowledgement before it if the program polls, and not
// otherwise: the peer's send would complete after the answer to it.
func TestAnswersOvertakeForThoseWhoPoll(t *testing.T) {
	const now = clock.Time(2 * pollingTime)
	for _, c := range []struct {
		drove clock.Time
		want  ib.PSN // that leaves first
	}{{now, 1}, {now - clock.Time(pollingTime), 101}, {0, 101}} {
		k := newKeeping()
		k.queued = k.made(made{op: ib.RCAcknowledge, psn: 101, syndrome: positive}, made{op: ib.RCSendOnly, psn: 1})
		k.host.drove = c.drove
		k.answerFirst(now)
		if got := k.psns(k.queued); len(got) != 2 || got[0] != c.want {
			t.Errorf("driven at %d, now %d: %v leave, want %d first", c.drove, now, got, c.want)
		}
	}
}

// TestKeptAcknowledgementsArrive: the loop runs when an acknowledgement that was held back is due, also if nobody
// polls any more, so that every message that was answered completes at its sender.
func TestKeptAcknowledgementsArrive(t *testing.T) {
	const each = 200
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			c := pairs(t, n, AdapterConfig{Path: PathWire})
			play := func(from, to *pair, id uint64) {
				to.postRecv(id)
				from.post(ring.SendWR{ID: id, Op: ring.OpSend, Flags: ring.Signaled})
				for { // both poll: completions of sends come in between
					if e := to.cq.next(); e.Op == ring.CQRecv {
						return
					}
				}
			}
			for i := range uint64(each) {
				play(c.a, c.b, i)
				play(c.b, c.a, i)
			}
			// Sends that are not complete yet must complete without another message.
			for _, q := range []*pair{c.a, c.b} {
				deadline := time.Now().Add(patience)
				for q.info().SendPosted != 0 {
					if time.Now().After(deadline) {
						t.Fatalf("%d sends have not completed after their acknowledgements were due", q.info().SendPosted)
					}
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
}
