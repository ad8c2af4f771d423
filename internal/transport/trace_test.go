package transport

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/trace"
)

// traced has a host's engine record at a level; the result returns what it has recorded as "point: verdict or reason".
func traced(t *testing.T, h *host, l trace.Level) (texts func() []string) {
	t.Helper()
	s, err := trace.Start(trace.Config{Levels: trace.Uniform(l), Bytes: trace.LeastBytes}, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	h.e.SetTrace(trace.NewRecorder(s.Loop, 0, func() int64 { at++; return at }))
	return func() (list []string) {
		for _, r := range s.Records(func(f func()) { f() }) {
			name, args, values := trace.Describe(r)
			for i, a := range args {
				switch a.Kind {
				case trace.Verdict:
					name += ": " + Verdict(values[i]).String()
				case trace.Reason:
					name += ": " + Reason(values[i]).String()
				}
			}
			list = append(list, name)
		}
		return list
	}
}

// TestTraceOfLoss: a lost packet leaves in the records of both ends what each made of it: the responder kept what came ahead and sent
// a NAK, the requester sent the lost one again after it, and nothing is recorded of packets at a lower level.
func TestTraceOfLoss(t *testing.T) {
	for _, l := range []trace.Level{trace.Off, trace.Information, trace.Verbose} {
		t.Run(l.String(), func(t *testing.T) { traceLoss(t, l) })
	}
}

func traceLoss(t *testing.T, l trace.Level) {
	f := newFlow(t, 1024, 4096, ring.OpWrite)
	requester, responder := traced(t, f.a.host, l), traced(t, f.b.host, l)
	f.a.post(f.wr)
	lost := false
	deliverLossy(f, func(o *frame.Out) bool {
		drop := !lost && o.Payload != nil
		lost = lost || drop
		return drop
	})
	want := map[trace.Level][2][]string{
		trace.Information: {{"NAK received"}, {"NAK sent"}},
		trace.Verbose: {
			{"NAK received", "packet sent: request", "packet sent: retransmission, after a NAK",
				"packet arrived: NAK sequence error: sends again", "packet arrived: acknowledges packets"},
			{"NAK sent", "packet arrived: ahead of a missing packet: kept for its turn", "packet arrived: carried out",
				"packet sent: NAK PSN sequence error", "packet sent: acknowledgement"},
		},
	}
	for i, got := range [][]string{requester(), responder()} {
		if l == trace.Off && len(got) > 0 {
			t.Errorf("off: %q", got)
		}
		for _, w := range want[l][i] {
			if !slices.Contains(got, w) {
				t.Errorf("end %d has %q, and not %q", i, got, w)
			}
		}
		if packet := slices.Contains(got, "packet sent: request"); packet && l < trace.Verbose {
			t.Errorf("end %d has packets at level %v: %q", i, l, got)
		}
	}
}

// TestTraceOfState: each change of a queue pair's state is recorded, and a request that failed.
func TestTraceOfState(t *testing.T) {
	f := newFlow(t, 1024, 64, ring.OpWrite)
	texts := traced(t, f.a.host, trace.Information)
	if err := f.a.e.Modify(f.now, f.a.q, command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil); err != nil {
		t.Fatal(err)
	}
	if got := texts(); !slices.Equal(got, []string{"state"}) {
		t.Errorf("recorded: %q", got)
	}
}

// TestWatchOfOnePair: whoever watches a queue pair is told of its packets only, until that ends, with a level of the trace or without,
// and each that was sent has its note's mark.
func TestWatchOfOnePair(t *testing.T) {
	f := newFlow(t, 1024, 64, ring.OpWrite)
	var notes []PacketNote
	tell := func(n *PacketNote) { notes = append(notes, *n) }
	for i, c := range []struct {
		watches []Watch
		level   trace.Level
		some    bool
	}{
		{[]Watch{{f.a.q.num + 1, tell}}, trace.Verbose, false}, {[]Watch{{f.a.q.num, tell}}, trace.Off, true},
		{[]Watch{{f.a.q.num + 1, tell}, {f.a.q.num, tell}}, trace.Verbose, true}, {nil, trace.Verbose, false},
	} {
		notes = nil
		f.a.e.WatchPackets(c.watches)
		texts := traced(t, f.a.host, c.level)
		marks := map[uint32]bool{}
		f.a.post(f.wr)
		deliverLossy(f, func(o *frame.Out) bool { marks[o.Mark()] = true; return false })
		if got := len(notes) > 0; got != c.some {
			t.Errorf("step %d: noted packets: %v, want %v", i, got, c.some)
		}
		if got := len(texts()) > 0; got != (c.level == trace.Verbose) {
			t.Errorf("step %d: recorded at level %v: %v", i, c.level, got)
		}
		for _, n := range notes {
			if n.Sent != marks[n.Mark] {
				t.Errorf("step %d: %v has mark %d, and left is %v", i, &n, n.Mark, marks)
			}
		}
	}
}

// TestPacketNotes: the notes of both ends of a connection that loses a packet say what a reader of the capture wants to know: that the
// packets behind it are kept, that a NAK is sent, what is sent again, and how far each end is. Notes survive being written and read.
func TestPacketNotes(t *testing.T) {
	f := newFlow(t, 1024, 4096, ring.OpWrite)
	var texts [2][]string
	for i, end := range []*end{f.a, f.b} {
		end.e.WatchPackets([]Watch{{end.q.num, func(n *PacketNote) {
			again, err := ReadPacketNote(n.Append(nil))
			if err != nil || again != *n {
				t.Errorf("%v is read as %v (%v)", n, &again, err)
			}
			texts[i] = append(texts[i], n.String())
		}}})
	}
	f.a.post(f.wr)
	lost := false
	deliverLossy(f, func(o *frame.Out) bool {
		drop := !lost && o.Payload != nil
		lost = lost || drop
		return drop
	})
	first := uint32(f.a.q.attr.SQPSN)
	psn := func(format string, more ...uint32) string {
		args := make([]any, len(more))
		for i, n := range more {
			args[i] = first + n
		}
		return fmt.Sprintf(format, args...)
	}
	for i, want := range [2][]string{
		{psn("sent: request; requester: PSN %d is acknowledged next, %d sent next", 0, 4), "sent: retransmission, after a NAK",
			psn("requester: all before PSN %d acknowledged", 4)},
		{psn("arrived: ahead of a missing packet: kept for its turn; responder expects PSN %d, 1 kept, NAK sent for it", 0),
			"sent: NAK PSN sequence error", psn("arrived: carried out; responder expects PSN %d", 4)},
	} {
		for _, w := range want {
			if !slices.ContainsFunc(texts[i], func(s string) bool { return strings.Contains(s, w) }) {
				t.Errorf("end %d has %q, and not %q", i, texts[i], w)
			}
		}
	}
	if _, err := ReadPacketNote(make([]byte, 3)); err == nil {
		t.Error("a note of three bytes was read")
	}
}

// deliverLossy carries packets between both ends for some round trips, except those that lose says are lost.
func deliverLossy(f *flow, lose func(*frame.Out) bool) {
	for range 20 {
		f.now = f.now.Add(10 * time.Microsecond)
		for _, ends := range [][2]*end{{f.a, f.b}, {f.b, f.a}} {
			ends[0].e.Advance(f.now)
			kept := 0
			for i := range ends[0].turn(f.now, f.w.out) {
				if o := f.w.out[i]; !lose(&o) {
					f.w.out[kept] = o
					kept++
				}
			}
			f.w.deliver(f.now, kept, ends[1].host)
			ends[1].drain(f.now)
		}
	}
}
