package port

import (
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
)

// ofPriority returns a frame of IPv4 with a class, in a tag if that is not 0.
func ofPriority(class uint8, tci uint16) []byte {
	e := eth.Ethernet{Type: eth.TypeIPv4, Tagged: tci != 0, TCI: tci}
	b := make([]byte, e.Len()+46)
	e.Put(b)
	b[e.Len()], b[e.Len()+1] = 0x45, class
	return b
}

// TestCounters_Priorities: frames count at the priority that they name, by tag or DSCP as the port trusts, and the others apart,
// whoever they are for; packets of a socket with the headers that it has taken away (WinOF 5.50, 4.9.4.3).
func TestCounters_Priorities(t *testing.T) {
	whole := []frame.In{{Data: ofPriority(46<<2, 0), Raw: true}, {Data: ofPriority(46<<2, 3<<13|7), Raw: true}}
	socket := []frame.In{{Data: make([]byte, 100), TrafficClass: 26 << 2}}
	for _, x := range []struct {
		name string
		c    qos.Classifier
		in   []frame.In
		want [9]Tally
	}{
		{"tags", qos.Classifier{}, whole, [9]Tally{Untagged: {1, 60}, 3: {1, 64}}},
		{"DSCPs", qos.Classifier{ByDSCP: true}, whole, [9]Tally{5: {2, 124}}},
		{"tags at a socket", qos.Classifier{Untagged: 4}, socket, [9]Tally{Untagged: {1, 142}}},
		{"DSCPs at a socket", qos.Classifier{ByDSCP: true}, socket, [9]Tally{3: {1, 142}}},
	} {
		p := Port{Classifier: x.c}
		p.Receive(0, &Wire{}, x.in)
		if got := p.Counters().Arrived; got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

// BenchmarkReceive_Priorities: what it costs to count frames by priority.
func BenchmarkReceive_Priorities(b *testing.B) {
	in := make([]frame.In, 64)
	for i := range in {
		in[i] = frame.In{Data: ofPriority(46<<2, 0), Raw: true}
	}
	var p Port
	w := &Wire{}
	for b.Loop() {
		p.arrived(w, in)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(in)), "ns/frame")
}
