package transport

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// answering is an engine with two connected queue pairs, whose program answers messages that the test makes.
type answering struct {
	t       *testing.T
	x       *host
	q       [2]*end
	peer    [2]*end
	next    [2]ib.PSN // of the next message to each
	first   [2]ib.PSN
	out     [16]frame.Out
	program Program
}

func newAnswering(t *testing.T) *answering {
	a := &answering{t: t, x: newHost(t, nil, "10.0.0.1", Config{})}
	peer := newHost(t, nil, "10.0.0.2", Config{FirstQPN: 0x100})
	for i := range a.q {
		a.q[i], a.peer[i] = a.x.qp(command.RC, QPConfig{Program: &a.program}), peer.qp(command.RC, QPConfig{})
		c := defaultConnection()
		c.timeout = 0
		connect(a.q[i], a.peer[i], c)
		a.first[i] = ib.PSN(c.psn[1])
		a.next[i] = a.first[i]
		for range 60 {
			a.q[i].postRecv(ring.RecvWR{})
		}
	}
	return a
}

// attend makes the program of both queue pairs what a says.
func (a *answering) attend(how attendance) {
	a.program.Polls(0)
	a.x.e.Drive(nil)
	switch how {
	case polled:
		a.program.Polls(clock.Never)
	case driven:
		a.x.e.Drive(&a.program)
	}
}

// arrive makes a request arrive.
func (a *answering) arrive(i int, op ib.Opcode) {
	d := make([]byte, ib.BTHLen, ib.BTHLen+ib.RETHLen)
	ib.BTH(d).Encode(op, false, true, 0, ib.PKeyDefault, ib.QPN(a.q[i].q.num), a.next[i])
	if op.HasRETH() {
		d = d[:ib.BTHLen+ib.RETHLen]
		length := uint32(0)
		if op == ib.RCWriteOnly {
			length = 8
		}
		ib.RETH(d[ib.BTHLen:]).Encode(0, 0x77, length)
	}
	a.next[i] = a.next[i].Next()
	a.x.e.Receive(a.x.e.now, []frame.In{{Data: d, Src: a.peer[i].addr, Dst: a.x.addr, SrcPort: pairPort}})
}

// leaves transmits, and lists what leaves: s is a send and r the response to a read, a an ACK and n a NAK with the
// number of the message; those of the second queue pair are in capital letters.
func (a *answering) leaves(now clock.Time) string {
	var all []string
	n := a.x.e.Transmit(now, 0, a.out[:])
	for j := range a.out[:n] {
		o := &a.out[j]
		bth, rest := ib.BTH(o.Head[frame.HeadRoom:]), o.Head[frame.HeadRoom+ib.BTHLen:]
		i := 0
		if bth.DestQP() == ib.QPN(a.peer[1].q.num) {
			i = 1
		}
		number := bth.PSN().Diff(a.first[i]) + 1
		what := "s"
		switch {
		case bth.Opcode() == ib.RCReadResponseOnly:
			what = "r"
		case bth.Opcode() == ib.RCAcknowledge && ib.AETH(rest).Syndrome().IsACK():
			what = fmt.Sprint("a", number)
		case bth.Opcode() == ib.RCAcknowledge:
			what = fmt.Sprint("n", number)
		}
		if i == 1 {
			what = strings.ToUpper(what)
		}
		all = append(all, what)
	}
	return strings.Join(all, " ")
}

// moment is a turn, in microseconds after the start: what has arrived and been posted, and what must leave. M is a
// message, m one to the second queue pair, B a write without its data, R a read of no bytes, s an answer
// and S one of the second queue pair.
type moment struct {
	at    int
	what  string
	want  string
	quiet bool // nothing has arrived anywhere
}

func (a *answering) do(m moment) string {
	now := clock.Time(time.Millisecond) + clock.Time(time.Duration(m.at)*time.Microsecond)
	a.x.e.now = now
	for _, w := range m.what {
		switch w {
		case 'M':
			a.arrive(0, ib.RCSendOnly)
		case 'm':
			a.arrive(1, ib.RCSendOnly)
		case 'B':
			a.arrive(0, ib.RCWriteOnly)
		case 'R':
			a.arrive(0, ib.RCReadRequest)
		case 's':
			a.q[0].post(ring.SendWR{Op: ring.OpSend, Flags: ring.Inline})
		case 'S':
			a.q[1].post(ring.SendWR{Op: ring.OpSend, Flags: ring.Inline})
		}
	}
	if m.quiet {
		a.x.e.Quiet(now)
	}
	return a.leaves(now)
}

// TestTrailingACK_Rules: the ACK of a message that the program has answered waits for the next message, whose ACK
// covers both, or until its time is over.
func TestTrailingACK_Rules(t *testing.T) {
	wait := int(trailTime / time.Microsecond)
	most := int(trailMost / time.Microsecond)
	late := int(trailLate/time.Microsecond) + 1
	row := func() (all []moment) { // a message each microsecond
		for i := range trailRow {
			all = append(all, moment{at: i, what: "Ms", want: "s"})
		}
		return all
	}
	begun := []moment{{at: 0, what: "Ms", want: "s"}}
	inVain := []moment{
		{at: 0, what: "Ms", want: "s"}, {at: wait, want: "a1"},
		{at: 100, what: "Ms", want: "s"}, {at: 100 + wait, want: "a2"},
		{at: 200, what: "Ms", want: "s"},
	}
	for _, c := range []struct {
		name  string
		first []moment
		then  []moment
	}{
		{"it leaves alone in the end", begun, []moment{{at: wait - 1}, {at: wait, want: "a1"}, {at: wait + 1}}},
		{"a later one tells as much", begun, []moment{{at: 5, what: "Ms", want: "s"}, {at: 5 + wait, want: "a2"}}},
		{"so does one that leaves by itself", begun, []moment{{at: 5, what: "M", want: "a2"}, {at: 50}}},
		{"and a refusal", begun, []moment{{at: 5, what: "B", want: "n2"}, {at: 50}}},
		{"and the answer to a read", begun, []moment{{at: 5, what: "R", want: "r"}, {at: 50}}},
		{"it goes with other messages, behind them", begun, []moment{{at: 1, what: "ss", want: "s s a1"}, {at: 50}}},
		{"that of another queue pair tells nothing", begun, []moment{{at: 1, what: "m", want: "A1 a1"}, {at: 50}}},
		{"they are not replaced for ever", begun, []moment{
			{at: 10, what: "Ms", want: "s"}, {at: most + 1, what: "Ms", want: "s a3"}, {at: most + 9, what: "Ms", want: "s"}}},
		{"nor for more messages than a short queue has room for", row(),
			[]moment{{at: trailRow, what: "Ms", want: "s a13"}, {at: trailRow + 1, what: "Ms", want: "s"}}},
		{"nor one before an answer to somebody else", nil, []moment{{at: 0, what: "MS", want: "S a1"}, {at: 50}}},
		{"nor one among many packets", nil, []moment{{at: 0, what: "Mss", want: "a1 s s"}, {at: 50}}},
		{"after two in vain they leave when nothing comes", inVain,
			[]moment{{at: 201}, {at: 202, want: "a3", quiet: true}, {at: 203, quiet: true}}},
		{"or in their time, where something always comes", inVain, []moment{{at: 199 + wait}, {at: 200 + wait, want: "a3"}}},
		{"or are told of by a later one", inVain, []moment{{at: 205, what: "Ms", want: "s"}, {at: 206, want: "a4", quiet: true}}},
		{"at once where nobody drove the loop", inVain,
			[]moment{{at: 200 + late, want: "a3", quiet: true}, {at: 500, what: "Ms", want: "s a4"}}},
	} {
		a := newAnswering(t)
		a.attend(polled)
		for i, m := range slices.Concat(c.first, c.then) {
			if got := a.do(m); got != m.want {
				t.Errorf("%s, moment %d at %d us: %q leaves, want %q", c.name, i, m.at, got, m.want)
			}
		}
	}
}

// TestTrailingACK_Deadline: the engine wants to run when the ACK is due; one that leaves when nothing arrives wants it
// at once.
func TestTrailingACK_Deadline(t *testing.T) {
	a := newAnswering(t)
	e := a.x.e
	a.attend(polled)
	a.do(moment{at: 0, what: "Ms"})
	if due, want := e.Deadline(), e.now.Add(trailTime); due != want || e.Pending() != 0 {
		t.Errorf("deadline %d, want %d; pending: %v", due, want, e.Pending() != 0)
	}
	e.trail.soon = true
	if due := e.Deadline(); due != e.now {
		t.Errorf("deadline %d, want %d", due, e.now)
	}
	a.do(moment{at: 1, quiet: true})
	if due := e.Deadline(); due != clock.Never {
		t.Errorf("deadline %d after it has left", due)
	}
}

// TestTrailingACK_LeavesWithItsQueuePair: a queue pair that ends sends its trailing ACK.
func TestTrailingACK_LeavesWithItsQueuePair(t *testing.T) {
	a := newAnswering(t)
	a.attend(polled)
	a.do(moment{at: 0, what: "Ms"})
	a.x.e.Destroy(a.x.e.now, a.q[0].q)
	if got := a.leaves(a.x.e.now); got != "a1" {
		t.Errorf("%q leaves, want the ACK", got)
	}
	if got := a.leaves(a.x.e.now.Add(time.Millisecond)); got != "" {
		t.Errorf("%q leaves later", got)
	}
}

// TestTrailingACK_BeforeMADs: a trailing ACK leaves before a MAD, which may disconnect its queue pair.
func TestTrailingACK_BeforeMADs(t *testing.T) {
	a := newAnswering(t)
	e := a.x.e
	a.attend(polled)
	a.do(moment{at: 0, what: "Ms"})
	if err := e.SendDatagram(&frame.Route{Src: a.x.addr, Dst: a.peer[0].addr}, 1, 0, []byte{1}); err != nil {
		t.Fatal(err)
	}
	n := e.Transmit(e.now, 0, a.out[:])
	if n != 2 || opcode(&a.out[0]) != ib.RCAcknowledge || opcode(&a.out[1]) != ib.UDSendOnly {
		t.Errorf("%d packets leave, want the ACK and then the MAD", n)
	}
}

// TestAnswerFirst_OnlyForThosePolling: an answer overtakes the ACK before it if the program polls, and not otherwise:
// the peer's send would complete after the answer to it. Only then may the ACK trail.
func TestAnswerFirst_OnlyForThosePolling(t *testing.T) {
	for _, c := range []struct {
		attended   attendance
		what, want string
	}{
		{unattended, "Ms", "a1 s"}, {polled, "Ms", "s"}, {driven, "Ms", "s"},
		{unattended, "MS", "a1 S"}, {polled, "MS", "S a1"}, {driven, "MS", "S a1"},
	} {
		a := newAnswering(t)
		a.attend(c.attended)
		if got := a.do(moment{what: c.what}); got != c.want {
			t.Errorf("attendance %d, %s: %q leaves, want %q", c.attended, c.what, got, c.want)
		}
	}
}

// TestAnswerFirst_NotForAnotherProgram: that some program polls, or makes the turn, says nothing of the others, whose peers
// may rely on the order of completions.
func TestAnswerFirst_NotForAnotherProgram(t *testing.T) {
	for _, how := range []attendance{polled, driven} {
		for _, what := range []string{"Ms", "MS"} {
			a := newAnswering(t)
			a.attend(how)
			a.q[0].q.program = new(Program)
			if got, want := a.do(moment{what: what}), "a1 "+what[1:]; got != want {
				t.Errorf("attendance %d of another program, %s: %q leaves, want %q", how, what, got, want)
			}
		}
		a := newAnswering(t)
		a.attend(how)
		a.q[0].q.program = new(Program)
		if got := a.do(moment{what: "M"}); got != "a1" {
			t.Errorf("attendance %d of another program: %q leaves, want the ACK, which must not wait for an answer", how, got)
		}
	}
}

// TestDeferredACK_WaitsForTheAnswer: where the program drives the engine, an ACK that is alone waits while messages
// arrive one by one, for answerTime at most; the answer ends the wait.
func TestDeferredACK_WaitsForTheAnswer(t *testing.T) {
	end := int(answerTime / time.Microsecond)
	for _, c := range []struct {
		name     string
		attended attendance
		moments  []moment
	}{
		{"until a turn in which nothing arrives", driven, []moment{{at: 0, what: "M"}, {at: 1, what: "M"}, {at: 2, want: "a2"}}},
		{"until the answer", driven, []moment{{at: 0, what: "M"}, {at: 1, what: "s", want: "s"}}},
		{"for a limited time", driven,
			[]moment{{at: 0, what: "M"}, {at: end - 1, what: "M"}, {at: end, what: "M", want: "a3"}, {at: end + 1, what: "M"}}},
		{"not in a stream", driven, []moment{{at: 0, what: "MMM", want: "a3"}}},
		{"not for two queue pairs", driven, []moment{{at: 0, what: "Mm", want: "a1 A1"}}},
		{"not a refusal", driven, []moment{{at: 0, what: "B", want: "n1"}}},
		{"not where the program only polls", polled, []moment{{at: 0, what: "M", want: "a1"}}},
		{"not where it sleeps", unattended, []moment{{at: 0, what: "M", want: "a1"}}},
	} {
		a := newAnswering(t)
		a.attend(c.attended)
		for i, m := range c.moments {
			if got := a.do(m); got != m.want {
				t.Errorf("%s, moment %d at %d us: %q leaves, want %q", c.name, i, m.at, got, m.want)
			}
		}
	}
}
