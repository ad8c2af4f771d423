package subnet_test

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/mad"
)

// BenchmarkAdministration asks for paths between pairs of 1,024 hosts, with 64 requests outstanding as a client with
// many programs has. One operation is one answer.
func BenchmarkAdministration(b *testing.B) {
	top, err := topology.FatTree(topology.FatTreeShape{Radix: 16, Levels: 3, Hosts: 1024, HostPorts: 1}, topology.Rate{})
	w := newWorld(b, top, err)
	sm := w.manager(0, subnet.Config{}).sm
	w.run(5 * time.Second)
	if !w.heard("SUBNET UP") {
		b.Fatal(w.log)
	}
	ask := func(i int, attribute uint16, method uint8, mask uint64) subnet.Packet {
		from, to := fabric.Place{Node: i % 1024, Port: 1}, fabric.Place{Node: (i*37 + 11) % 1024, Port: 1}
		path := mad.PathRecord{SLID: w.f.PortInfo(from).LID, DLID: w.f.PortInfo(to).LID, NumPath: 1}
		m := mad.NewSA(method, attribute, 0, uint64(i))
		m.ComponentMask = mask
		copy(m.Data[:], path.Append(nil))
		p := subnet.Packet{LID: path.SLID, QPN: 1, LocalQPN: 1}
		m.Append(p.MAD[:0])
		return p
	}
	const window = 64
	requests := make([]subnet.Packet, window)
	for i := range requests {
		requests[i] = ask(i, mad.AttrPathRecord, mad.MethodGet, mad.PathSLID|mad.PathDLID|mad.PathNumPath)
	}
	var out [window]subnet.Packet
	b.ReportAllocs()
	answered := 0
	for b.Loop() {
		w.now++
		sm.Receive(w.now, &requests[answered%window])
		if answered++; answered%window == 0 {
			if n := sm.Transmit(w.now, out[:]); n != window {
				b.Fatalf("%d answers, want %d", n, window)
			}
			_ = sm.Deadline()
		}
	}
}
