package transport

import (
	"slices"
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

// TestTraceOfOnePair: with TracePackets only that queue pair's packets are recorded, until it ends.
func TestTraceOfOnePair(t *testing.T) {
	f := newFlow(t, 1024, 64, ring.OpWrite)
	s, err := trace.Start(trace.Config{Levels: trace.Uniform(trace.Verbose), Bytes: trace.LeastBytes}, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	r := trace.NewRecorder(s.Loop, 0, func() int64 { return 1 })
	count := func() int { return len(s.Records(func(f func()) { f() })) }
	for i, c := range []struct {
		qpn  uint32
		to   *trace.Recorder
		some bool
	}{{f.a.q.num + 1, r, false}, {f.a.q.num, r, true}, {f.a.q.num, nil, false}} {
		before := count()
		f.a.e.TracePackets(c.qpn, c.to)
		f.a.post(f.wr)
		deliverLossy(f, func(*frame.Out) bool { return false })
		if got := count() > before; got != c.some {
			t.Errorf("step %d: recorded packets: %v, want %v", i, got, c.some)
		}
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
