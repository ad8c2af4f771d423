package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestLocalPath_OfAReplacedAdapter: an adapter that has taken the place of another, after connections of that took the local
// path, has the local path for its own connections.
func TestLocalPath_OfAReplacedAdapter(t *testing.T) {
	a, b := networks[1].make(t, AdapterConfig{})
	send := func() {
		t.Helper()
		c := connect(a.qp(command.CreateQP{}, a.cq(16)), b.qp(command.CreateQP{}, b.cq(16)))
		if p := c.a.info().Path; p != 2 {
			t.Fatalf("path %d, want 2, the local one", p)
		}
		c.b.postRecv(7, b.buffer(64).sge(0, 8))
		c.a.postSend(1, ring.OpSend, a.buffer(64).sge(0, 8))
		wantSuccess(t, c.b.cq.next(), 7, ring.CQRecv)
		wantSuccess(t, c.a.cq.next(), 1, ring.CQSend)
	}
	send()
	h, index := a.host, a.adapter
	a.check(h.SetAdapterState(index, false))
	a.check(h.ReplaceAdapter(index, AdapterConfig{Addr: loopback.Addr()}))
	a.check(h.SetAdapterState(index, true))
	a = newProgram(t, h, index)
	send()
}
