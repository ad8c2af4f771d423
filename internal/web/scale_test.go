package web

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

// BenchmarkConnectionsOf10000 makes a page of 100 of 10,000 queue pairs, searched and sorted.
func BenchmarkConnectionsOf10000(b *testing.B) {
	p := newBench(b)
	for i := range 10000 {
		p.status.Adapters[0].QPs = append(p.status.Adapters[0].QPs, api.QPStatus{
			Number: uint32(i + 1), Type: "RC", State: "RTS", Owner: fmt.Sprintf("program-%d", i%10), PID: i,
			Peer: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), Path: "wire",
		})
	}
	for b.Loop() {
		w := p.get("/web/connections?search=program-3&sort=peer&order=down")
		b.ReportMetric(float64(w.Body.Len()), "bytes/page")
	}
}
