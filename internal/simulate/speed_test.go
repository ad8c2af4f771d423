package simulate

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cpu/hugepages"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

func prepare(t testing.TB, text string) *Run {
	t.Helper()
	s, err := scenario.Read("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// settings are those of DCQCN's authors, with PFC.
const settings = `"switch": {"buffer": "32MB", "pfc": [3], "kmin": "5KB", "kmax": "200KB", "pmax": 0.01},
	"nic": {"pfc": [3], "dcqcn": "authors", "DcqcnEnablePrio3": 1, "DcqcnRpgMinRate": 100, "DcqcnCnpDscp": 48}, "duration": "100s", "sample": "1s"`

// traversals returns how many frames have crossed links.
func (r *Run) traversals() (n uint64) {
	for i := range r.s.Graph.Nodes {
		for p := range r.s.Graph.Nodes[i].Links {
			c := r.n.Switch(i).Port(p).Counters(r.now)
			for q := range c.Priority {
				n += c.Priority[q].OutFrames + c.Priority[q].Pause.Sent
			}
		}
	}
	return n
}

// stride is a simulation that is measured in its stride, by the time of processors, so that what else the machine does counts little.
type stride struct {
	r       *Run
	step    time.Duration
	took    time.Duration
	packets uint64
	links   uint64
}

// begin lets a simulation get into its stride.
func begin(b *testing.B, step time.Duration, format string, args ...any) *stride {
	x := &stride{r: prepare(b, fmt.Sprintf(format, args...)), step: step}
	x.r.pass(clock.Time(20 * step))
	x.links = x.r.traversals()
	return x
}

// run measures a step.
func (x *stride) run() {
	packets, before := x.r.packets.Load(), ndperf.ProcessorTime()
	x.r.pass(x.r.now.Add(x.step))
	x.took += ndperf.ProcessorTime() - before
	x.packets += x.r.packets.Load() - packets
}

// each is how long a packet takes, in ns.
func (x *stride) each() float64 { return float64(x.took) / float64(x.packets) }

// report says how fast it was.
func (x *stride) report(b *testing.B) {
	b.ReportMetric(float64(x.packets)/x.took.Seconds()/1e6, "Mpackets/s")
	b.ReportMetric(float64(x.r.traversals()-x.links)/x.took.Seconds()/1e6, "Mtraversals/s")
	b.ReportMetric(x.each(), "ns/packet")
}

// BenchmarkIncast is incasts at 40 Gb/s with DCQCN and PFC, with RC queue pairs and with lean senders, on one processor.
func BenchmarkIncast(b *testing.B) {
	for _, lean := range []bool{false, true} {
		for _, senders := range []int{2, 16} {
			b.Run(fmt.Sprintf("%d to 1, lean %v", senders, lean), func(b *testing.B) {
				x := begin(b, 100*time.Microsecond, `{"topology": {"senders": %d}, "workload": {"kind": "incast"}, "lean": %v, %s}`, senders, lean,
					settings)
				b.ReportAllocs()
				hugepages.GatherHeap(time.Hour)
				for b.Loop() {
					x.run()
				}
				x.report(b)
			})
		}
	}
}

// rings are hosts at leaf switches, each of which sends to the next one of its leaf.
func rings(leaves, hosts int) string {
	var all []string
	for leaf := range leaves {
		var names []string
		for h := range hosts {
			names = append(names, fmt.Sprintf("%q", fmt.Sprint("host", leaf*hosts+h)))
		}
		all = append(all, fmt.Sprintf(`{"kind": "shift", "hosts": [%s]}`, strings.Join(names, ",")))
	}
	return strings.Join(all, ",")
}

// BenchmarkPorts is rings of hosts at leaf switches below a spine: what a packet takes in a network of 1,008 of them, of what it takes in
// one of 2 and of 16 that runs by turns with it, on one processor. All packets have two links to cross, so that they differ in nothing
// but how many others there are.
func BenchmarkPorts(b *testing.B) {
	for _, lean := range []bool{false, true} {
		b.Run(fmt.Sprintf("lean %v", lean), func(b *testing.B) {
			network := func(leaves, hosts int, step time.Duration) *stride {
				return begin(b, step, `{"topology": {"kind": "leaf-spine", "leaves": %d, "spines": 1, "hosts": %d},
					"workload": [%s], "lean": %v, %s}`, leaves, hosts, rings(leaves, hosts), lean, settings)
			}
			two, sixteen := network(1, 2, 500*time.Microsecond), network(1, 16, 100*time.Microsecond)
			all := network(63, 16, 20*time.Microsecond)
			hugepages.GatherHeap(time.Hour) // as softvpi simulate does
			for b.Loop() {
				for _, x := range []*stride{two, all, sixteen} {
					x.run()
				}
			}
			all.report(b)
			b.ReportMetric(two.each(), "ns/packet-of-2")
			b.ReportMetric(sixteen.each(), "ns/packet-of-16")
			b.ReportMetric(all.each()/two.each(), "times-2-hosts")
		})
	}
}

// BenchmarkProcessors is an all-to-all of 256 hosts over leaves and spines on one processor and on all of them.
func BenchmarkProcessors(b *testing.B) {
	for _, lean := range []bool{false, true} {
		b.Run(fmt.Sprintf("lean %v", lean), func(b *testing.B) {
			var took [2]time.Duration
			for b.Loop() {
				for i, processors := range []int{1, runtime.GOMAXPROCS(0)} {
					r := prepare(b, fmt.Sprintf(`{"topology": {"kind": "leaf-spine", "leaves": 16, "spines": 8, "hosts": 16, "delay": "1us"},
						"workload": {"kind": "permutation"}, "lean": %v, "duration": "200us"}`, lean))
					before := time.Now()
					if _, err := r.Run(b.Context(), processors, nil); err != nil {
						b.Fatal(err)
					}
					took[i] += time.Since(before)
				}
			}
			b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "times-1-processor")
		})
	}
}

// held returns how many bytes the heap has when nothing more becomes free: what is in pools or has a finalizer takes more than one
// collection.
func held() int {
	var m runtime.MemStats
	for least, again := 0, 0; again < 3; again++ {
		runtime.GC()
		runtime.ReadMemStats(&m)
		if n := int(m.HeapAlloc); least == 0 || n < least {
			least, again = n, -1
		}
	}
	return int(m.HeapAlloc)
}

// use returns what the memory of an incast takes at a time, beyond packets: so many flows of each of some senders.
func use(t testing.TB, flows, senders int, lean bool, at clock.Time) int {
	before := held()
	text := strings.Repeat(`,{"size": "1MB"}`, flows)
	r := prepare(t, fmt.Sprintf(`{"topology": {"senders": %d}, "workload": [%s], "lean": %v, %s}`, senders, text[1:], lean, settings))
	r.pass(at)
	bytes := held() - before
	if r.ends != flows*senders || r.complete() > 0 {
		t.Fatalf("%d flows, %d of them complete", r.ends, r.complete())
	}
	for i := range r.n.shards {
		bytes -= r.n.shards[i].Store.Size()
	}
	runtime.KeepAlive(r)
	return bytes
}

// Times at which memory is measured: when all flows have started, and when they are in the midst of congestion.
const (
	started   = clock.Time(1)
	congested = clock.Time(2 * time.Millisecond)
)

// perFlow and perPort return what a flow takes at a time, and a port of a switch with its host and a flow.
func perFlow(t testing.TB, lean bool, at clock.Time) int {
	return (use(t, 61, 50, lean, at) - use(t, 1, 50, lean, at)) / (60 * 50)
}
func perPort(t testing.TB, lean bool, at clock.Time) int {
	return (use(t, 1, 62, lean, at) - use(t, 1, 2, lean, at)) / 60
}

// spare is how much more a flow may seem to take, since something else in the process may get memory meanwhile: 384 KB beside 3,000 flows.
const spare = 128

// TestMemory: a flow takes less than 2 KB, between lean hosts and between RC queue pairs, and a port of a switch with its
// host less than 64 KB, beyond packets.
func TestMemory(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		for _, at := range []clock.Time{started, congested} {
			each := perFlow(t, lean, at)
			t.Logf("%d bytes a flow at %v", each, time.Duration(at))
			if most := 2048 + spare; each > most {
				t.Errorf("%d bytes a flow at %v, want %d at most", each, time.Duration(at), most)
			}
		}
		port := perPort(t, lean, started)
		t.Logf("%d bytes a port of the switch, with a host and a flow", port)
		if port > 64<<10 {
			t.Errorf("%d bytes a port", port)
		}
	})
}

// BenchmarkMemory reports what TestMemory looks at.
func BenchmarkMemory(b *testing.B) {
	for _, lean := range []bool{false, true} {
		b.Run(fmt.Sprintf("lean %v", lean), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(perFlow(b, lean, started)), "B/flow")
				b.ReportMetric(float64(perFlow(b, lean, congested)), "B/congested-flow")
				b.ReportMetric(float64(perPort(b, lean, started)), "B/port")
			}
		})
	}
}
