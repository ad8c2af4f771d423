package device

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

// TestEveryConnectionHasItsSourcePort (WinOF manual: UDP.SrcPort = (SrcPort XOR DstPort) OR 0xC000): each connection sends
// from its own source port, also beyond a few, and the sockets go with the queue pairs and address handles.
func TestEveryConnectionHasItsSourcePort(t *testing.T) {
	const connections = 40
	x, y := overUDP(false)(t, AdapterConfig{Path: PathWire})
	bound := func(p *program) string { return p.host.Snapshot().Adapters[p.adapter].SourcePorts }
	computed, ports := map[uint32]uint16{}, map[uint16]bool{}
	var all []*connected
	for range connections {
		c := connect(x.idleQP(), y.idleQP())
		i, err := x.c.CMQuery(bg, c.idA)
		x.check(err)
		computed[c.a.q.Number] = i.Local.Port ^ c.serverPort | 0xc000
		all = append(all, c)
	}
	operations(t, all[connections-1])
	others := 0
	for _, q := range x.host.Snapshot().Adapters[x.adapter].QPs {
		if ports[q.SrcPort] = true; q.SrcPort != computed[q.Number] {
			others++
		}
	}
	if n := counter(t, x, "Link routes with another source port"); n != uint64(others) || n > 4 {
		t.Errorf("%d of %d connections have another source port, %d are counted", others, connections, n)
	}
	with := func(n int) string { return fmt.Sprintf("own (%d of 1024 bound)", n) }
	if got, want := bound(x), with(len(ports)+1); got != want { // one more for the connection manager
		t.Errorf("source ports with connections: %s, want %s", got, want)
	}
	ah, err := x.c.CreateAH(bg, command.CreateAH{PD: x.pd, AV: command.AddressVector{Addr: command.AddrFrom(y.addr), SrcPort: 0xc00c}})
	x.check(err)
	ah2, err := x.c.CreateAH(bg, command.CreateAH{PD: x.pd, AV: command.AddressVector{Addr: command.AddrFrom(y.addr), SrcPort: 0xc00c}})
	x.check(err)
	if got, want := bound(x), with(len(ports)+2); got != want {
		t.Errorf("source ports with address handles: %s, want %s", got, want)
	}
	x.check(x.c.Destroy(bg, command.KindAH, ah))
	x.check(x.c.Destroy(bg, command.KindAH, ah2))
	for _, c := range all {
		x.check(x.c.Destroy(bg, command.KindQP, c.a.q.Handle))
	}
	if got, want := bound(x), with(1); got != want {
		t.Errorf("source ports after the connections: %s, want %s", got, want)
	}
	// What was refused, or only looked at, leaves nothing.
	_, err = x.c.CreateAH(bg, command.CreateAH{PD: x.pd, AV: command.AddressVector{Addr: command.AddrFrom(netip.MustParseAddr("::1")),
		SrcPort: 0xc00d}})
	if err == nil {
		t.Error("an address handle to another family")
	}
	if err := y.c.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := bound(y), with(1); got != want {
		t.Errorf("source ports after the program has ended: %s, want %s", got, want)
	}
}
