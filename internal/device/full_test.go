package device

import (
	"sync/atomic"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/memlink"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// cloggedLink is a link that takes no frames while full is set.
type cloggedLink struct {
	link.Link
	full atomic.Bool
}

func (l *cloggedLink) Send(frames []frame.Out) (int, error) {
	if l.full.Load() {
		return 0, nil
	}
	return l.Link.Send(frames)
}

// TestFullLinkIsNoWork: a link that takes no frames gives the loop nothing to do, so that it can sleep and leave the
// processor to whoever makes room. Once there is room, what waited is sent.
func TestFullLinkIsNoWork(t *testing.T) {
	sw := memlink.NewSwitch()
	clogged := &cloggedLink{}
	var ends [2]*pair
	for i := range ends {
		h, cfg := newHost(t, Config{Seed: uint64(i)}), AdapterConfig{Addr: loopback.Addr()}
		p, err := sw.Port(memlink.PortConfig{Addr: cfg.Addr, Notify: h.Wake})
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Link = p; i == 0 {
			clogged.Link = p
			cfg.Link = clogged
		}
		prog := newProgram(t, h, h.add(t, cfg))
		ends[i] = prog.qp(command.CreateQP{}, prog.cq(256))
	}
	c := connect(ends[0], ends[1])
	from, to := c.a.p.buffer(64), c.b.p.buffer(64)
	clogged.full.Store(true)
	wr := ring.SendWR{ID: 1, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: to.addr(0), RKey: to.mem.RKey}
	wr.SGE[0] = from.sge(0, 64)
	c.a.post(wr)
	h := c.a.p.host
	h.lock()
	rested := false
	for range 1000 { // some turns have time-outs to look after
		if !h.ports[0].step(h.now()) {
			rested = true
		}
	}
	blocked := h.ports[0].blocked()
	h.unlock()
	if !blocked || !rested {
		t.Errorf("frames wait: %t, a turn had nothing to do: %t; want both", blocked, rested)
	}
	clogged.full.Store(false)
	wantSuccess(t, c.a.cq.next(), 1, ring.CQWrite)
}
