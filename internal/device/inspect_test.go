package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestInspect: an inspection lists as many objects as were asked for and says how many it left out.
func TestInspect(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	index := h.add(t, AdapterConfig{Addr: loopback.Addr(), Name: "one"})
	c, err := h.NewClient(ClientConfig{Name: "program", PID: 7})
	if err != nil {
		t.Fatal(err)
	}
	pd, err := c.AllocPD(bg, index)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		cq, err := c.CreateCQ(bg, command.CreateCQ{Adapter: index, Depth: 8})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.CreateSRQ(bg, command.CreateSRQ{PD: pd, Depth: 4, MaxSGE: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CreateQP(bg, command.CreateQP{PD: pd, Type: command.RC, SendCQ: cq.Handle, RecvCQ: cq.Handle}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := h.Inspect(index, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.QPs) != 2 || len(s.CQs) != 2 || len(s.SRQs) != 2 || s.LeftOut != 3 || len(s.Queues) != 1 {
		t.Errorf("the inspection is %+v, want 2 objects of each kind and 3 left out", s)
	}
	if q := s.QPs[0]; q.Program != "program" || q.PID != 7 || q.Number >= s.QPs[1].Number || q.Type != command.RC {
		t.Errorf("the first queue pair is %+v, want an RC one of the program with PID 7, in order of numbers", q)
	}
	if s.Counters.Name != "one" || s.Counters.Objects.QP != 3 || s.Limits.QP != defaultLimits().QP || len(s.PKeys) != 1 ||
		s.PKeys[0] != 0xffff || s.CQs[0].Users != 2 {
		t.Errorf("the inspection is %+v, want the adapter's name, counts, limits and partitions", s)
	}
	if _, err := h.Inspect(9, 1); err == nil {
		t.Error("inspecting adapter 9, which does not exist, gave no error")
	}
}
