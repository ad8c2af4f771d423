package transport

import (
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/trace"
)

// BenchmarkTraceOverhead alternates between engines that record nothing, at the level of the automatic session, and packets, in short
// stretches of the same run, so that what else the machine does meets all three alike. It reports the medians of the two ratios to the
// first: go test ./internal/transport -run - -bench TraceOverhead.
func BenchmarkTraceOverhead(b *testing.B) {
	for _, c := range []struct {
		name        string
		size, batch int
		runs        int // in a stretch
	}{{"64B", 64, 32, 20}, {"1MB", 1 << 20, 1, 1}} {
		b.Run(c.name, func(b *testing.B) {
			flows := [3]*flow{}
			for i, l := range []trace.Level{trace.Off, trace.Information, trace.Verbose} {
				flows[i] = newFlow(b, 4096, c.size, ring.OpWrite)
				if l == trace.Off {
					continue
				}
				s, err := trace.Start(trace.Config{Levels: trace.Uniform(l), Bytes: trace.LeastBytes}, time.Now())
				if err != nil {
					b.Fatal(err)
				}
				r := trace.NewRecorder(s.Loop, 0, func() int64 { return time.Now().UnixNano() })
				flows[i].a.e.SetTrace(r)
				flows[i].b.e.SetTrace(r)
			}
			var information, packets []float64
			for b.Loop() {
				var took [3]time.Duration
				for k := range took {
					i := (k + len(packets)) % len(took) // none is always behind the same other
					began := time.Now()
					for range c.runs {
						flows[i].run(b, c.batch)
					}
					took[i] = time.Since(began)
				}
				information = append(information, float64(took[1])/float64(took[0]))
				packets = append(packets, float64(took[2])/float64(took[0]))
			}
			b.ReportMetric(median(information), "information/off")
			b.ReportMetric(median(packets), "verbose/off")
		})
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkTraceInstructions writes messages of one packet between two engines, with a trace at the level of the automatic session or
// without, for a counter of instructions, on which other work on the machine has no bearing. In one thread, of which nothing else takes
// turns, two runs of a level differ by what so many messages cost, at both ends together:
//
//	go test -c ./internal/transport
//	for n in 200x 2200x; do GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1 GOGC=off valgrind --tool=callgrind ./transport.test -test.run - \
//	  -test.bench TraceInstructions/information -test.benchtime $n; done
func BenchmarkTraceInstructions(b *testing.B) {
	for _, l := range []trace.Level{trace.Off, trace.Information} {
		b.Run(l.String(), func(b *testing.B) {
			f := newFlow(b, 4096, 64, ring.OpWrite)
			if l != trace.Off {
				s, err := trace.Start(trace.Config{Levels: trace.Uniform(l), Bytes: trace.LeastBytes}, time.Now())
				if err != nil {
					b.Fatal(err)
				}
				r := trace.NewRecorder(s.Loop, 0, func() int64 { return time.Now().UnixNano() })
				f.a.e.SetTrace(r)
				f.b.e.SetTrace(r)
			}
			for b.Loop() {
				f.run(b, 32)
			}
			b.ReportMetric(32*float64(b.N), "messages")
		})
	}
}
