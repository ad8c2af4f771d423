package simulate

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
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

// measure runs a simulation in its stride.
func measure(b *testing.B, r *Run, step time.Duration) {
	r.pass(clock.Time(20 * step))
	packets, links := r.packets(), r.traversals()
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		r.pass(r.now.Add(step))
	}
	seconds := b.Elapsed().Seconds()
	n := float64(r.packets() - packets)
	b.ReportMetric(n/seconds/1e6, "Mpackets/s")
	b.ReportMetric(float64(r.traversals()-links)/seconds/1e6, "Mtraversals/s")
	b.ReportMetric(seconds*1e9/n, "ns/packet")
}

// BenchmarkIncast is incasts at 40 Gb/s with DCQCN and PFC, with RC queue pairs and with lean senders.
func BenchmarkIncast(b *testing.B) {
	for _, lean := range []bool{false, true} {
		for _, senders := range []int{2, 16} {
			b.Run(fmt.Sprintf("%d to 1, lean %v", senders, lean), func(b *testing.B) {
				measure(b, prepare(b, fmt.Sprintf(`{"topology": {"senders": %d}, "workload": {"kind": "incast"}, "lean": %v, %s}`, senders, lean,
					settings)), 100*time.Microsecond)
			})
		}
	}
}

// BenchmarkPorts is pairs of hosts at switches, each of which sends to the other: what a packet takes in a network of 2 and of 1,000
// of them.
func BenchmarkPorts(b *testing.B) {
	for _, lean := range []bool{false, true} {
		for _, leaves := range []int{1, 63} {
			hosts := 2
			if leaves > 1 {
				hosts = 16
			}
			b.Run(fmt.Sprintf("%d hosts, lean %v", leaves*hosts, lean), func(b *testing.B) {
				// Both ways have one switch: a host sends to its neighbour at the same leaf.
				measure(b, prepare(b, fmt.Sprintf(`{"topology": {"kind": "leaf-spine", "leaves": %d, "spines": 1, "hosts": %d},
					"workload": {"kind": "shift", "by": 1}, "lean": %v, %s}`, leaves, hosts, lean, settings)), 20*time.Microsecond)
			})
		}
	}
}

// TestMemory: a flow between lean hosts takes less than 2 KB, between RC queue pairs less than 4, and a port of a switch with its
// host less than 64 KB, beyond packets.
func TestMemory(t *testing.T) {
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	use := func(flows, senders int, lean bool) int {
		before := heap()
		text := ""
		for range flows {
			text += `,{"size": "1MB"}`
		}
		r := prepare(t, fmt.Sprintf(`{"topology": {"senders": %d}, "workload": [%s], "lean": %v, %s}`, senders, text[1:], lean, settings))
		r.pass(1) // all have started
		after := heap()
		if r.open != flows*senders {
			t.Fatalf("%d flows", r.open)
		}
		runtime.KeepAlive(r)
		return after - before
	}
	both(t, func(t *testing.T, lean bool) {
		one, many := use(1, 50, lean), use(61, 50, lean)
		each := (many - one) / (60 * 50)
		t.Logf("%d bytes a flow", each)
		most := 2048
		if !lean {
			most = 4096 // two queue pairs with their rings
		}
		if each > most {
			t.Errorf("%d bytes a flow", each)
		}
		few, all := use(1, 2, lean), use(1, 62, lean)
		port := (all - few) / 60
		t.Logf("%d bytes a port of the switch, with a host and a flow", port)
		if port > 64<<10 {
			t.Errorf("%d bytes a port", port)
		}
	})
}
