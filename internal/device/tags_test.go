package device

import (
	"errors"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestTagOps: what is done to a matching list completes if it is asked to or fails; what is wrong is named and changes
// nothing; and the CQ stays while the SRQ does.
func TestTagOps(t *testing.T) {
	p := memoryProgram(t, AdapterConfig{})
	cq := p.cq(8)
	basic := command.CreateSRQ{PD: p.pd, Depth: 4, MaxSGE: 1}
	s, err := p.c.CreateTagSRQ(bg, command.CreateTagSRQ{CreateSRQ: basic, CQ: cq.q.Handle, Tags: 2})
	p.check(err)
	plain, err := p.c.CreateSRQ(bg, basic)
	p.check(err)
	op := func(o command.TagOp) (command.Handle, error) {
		if o.SRQ == 0 {
			o.SRQ = s.Handle
		}
		return p.c.TagOp(bg, o)
	}
	for what, o := range map[string]command.TagOp{
		"matches no tags": {SRQ: plain.Handle, Kind: command.TagAdd}, "Kind is 4": {Kind: 4}, "Kind is 0": {},
		"Flags is 0x4": {Kind: command.TagSync, Flags: 4}, "NumSGE is 5": {Kind: command.TagAdd, NumSGE: 5},
	} {
		var e *command.Error
		if _, err := op(o); !errors.As(err, &e) || e.Code != command.Invalid || !strings.Contains(e.Detail, what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
	for _, tags := range []uint32{0, 1025} {
		if _, err := p.c.CreateTagSRQ(bg, command.CreateTagSRQ{CreateSRQ: basic, CQ: cq.q.Handle, Tags: tags}); err == nil {
			t.Errorf("a list of %d tags", tags)
		}
	}
	if _, err := p.c.CreateQP(bg, command.CreateQP{PD: p.pd, Type: command.UC, SendCQ: cq.q.Handle, RecvCQ: cq.q.Handle,
		SRQ: s.Handle}); err == nil || !strings.Contains(err.Error(), "want 1 (RC)") {
		t.Errorf("UC with tags: %v", err)
	}
	first, err := op(command.TagOp{Kind: command.TagAdd, ID: 1, Flags: command.TagSignaled})
	p.check(err)
	_, err = op(command.TagOp{Kind: command.TagAdd, ID: 2})
	p.check(err)
	var full *command.Error
	if _, err := op(command.TagOp{Kind: command.TagAdd}); !errors.As(err, &full) || full.Code != command.Exhausted {
		t.Errorf("a third of two tags: %v", err)
	}
	for range 2 { // the second time it is gone
		_, err = op(command.TagOp{Kind: command.TagRemove, Entry: uint32(first), ID: 3})
		p.check(err)
	}
	_, err = op(command.TagOp{Kind: command.TagSync, Unexpected: 1, ID: 4, Flags: command.TagSignaled})
	p.check(err)
	for _, want := range []ring.CQE{
		{ID: 1, Op: ring.CQTagAdd}, {ID: 3, Op: ring.CQTagRemove, Status: ring.TagError},
		{ID: 4, Op: ring.CQTagSync, Flags: ring.TagSyncNeeded},
	} {
		got := cq.next()
		if got.Timestamp = 0; got != want {
			t.Errorf("completion %+v, want %+v", got, want)
		}
	}
	if err := p.c.Destroy(bg, command.KindCQ, cq.q.Handle); err == nil {
		t.Error("the CQ of an SRQ was destroyed")
	}
	p.check(p.c.Destroy(bg, command.KindSRQ, s.Handle))
	p.check(p.c.Destroy(bg, command.KindCQ, cq.q.Handle))
}
