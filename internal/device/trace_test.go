package device

import (
	"fmt"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/trace"
)

// BenchmarkTrace is BenchmarkWrite without a trace, at the level of the automatic session, and with a record of each turn. Compare
// medians of interleaved rounds: go test ./internal/device -run - -bench Trace -count 11.
func BenchmarkTrace(b *testing.B) {
	for _, size := range []int{64, 65536, 1 << 20} {
		for _, l := range []trace.Level{trace.Off, trace.Information, trace.Verbose} {
			b.Run(fmt.Sprintf("%d/%v", size, l), func(b *testing.B) {
				c := benchPair(b, networks[0], 64)
				if l != trace.Off {
					s, err := trace.Start(trace.Config{Levels: trace.Uniform(l)}, time.Now())
					if err != nil {
						b.Fatal(err)
					}
					for _, p := range []*program{c.a.p, c.b.p} {
						p.host.SetTrace(s.Loop)
						defer p.host.SetTrace(nil)
					}
				}
				benchWrite(b, c, size)
			})
		}
	}
}
