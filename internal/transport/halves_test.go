package transport

import (
	"reflect"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

// untouched checks that no queue pair has changed the halves that all have which do not use theirs.
func untouched(t testing.TB, e *Engine) {
	t.Helper()
	if !reflect.ValueOf(e.idle).IsZero() {
		t.Errorf("the idle halves are %+v", e.idle)
	}
}

// TestHalves: of a queue pair that only sends there is a requester, of one that only receives a responder, with what was set before; the
// local path takes both.
func TestHalves(t *testing.T) {
	n := sim.New(1)
	h, peer := newHost(t, n, "10.0.0.1", Config{}), newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x100})
	a, b := h.qp(command.RC, QPConfig{}), peer.qp(command.RC, QPConfig{})
	connect(a, b, defaultConnection())
	uses := func(q *QP) (sends, receives bool) { return q.req != &q.eng.idle.req, q.resp != &q.eng.idle.resp }
	check := func(what string, q *QP, sends, receives bool) {
		t.Helper()
		if s, r := uses(q); s != sends || r != receives {
			t.Errorf("%s: it uses its requester: %v, its responder: %v", what, s, r)
		}
	}
	check("connected", a.q, false, false)
	source, target := a.region(0x10000, make([]byte, 4096), allowAll), b.region(0x90000, make([]byte, 4096), allowAll)
	wr := ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: 0x90000, RKey: target.Key}
	wr.SGE[0] = ring.SGE{Addr: 0x10000, Length: 4096, LKey: source.Key}
	a.post(wr)
	n.Run(clock.Time(1e9), nil)
	if len(h.comps) != 1 || h.comps[0].Status != ring.Success {
		t.Fatalf("%+v", h.comps)
	}
	check("it has sent", a.q, true, false)
	check("it has received", b.q, false, true)
	if x, psn := b.q.responder(), a.q.req.una; x.psn != psn || psn.Diff(0) == 0 {
		t.Errorf("PSN %#x is expected, %#x is next", x.psn, psn)
	}
	if x := b.q.requester(); uint32(x.snd) != b.q.attr.SQPSN || x.retries != b.q.attr.Retry {
		t.Errorf("its requester begins with PSN %#x and %d retries, not %#x and %d", x.snd, x.retries, b.q.attr.SQPSN, b.q.attr.Retry)
	}
}
