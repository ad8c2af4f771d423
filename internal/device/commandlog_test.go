package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

// Each command is noted with the adapter of what it names, failed ones as such, and what concerns no adapter not at
// all; so are objects that took the place of one of another adapter.
func TestCommandLog(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	h.add(t, AdapterConfig{Addr: loopback()})
	second := loopback()
	h.add(t, AdapterConfig{Addr: second})
	plain, err := h.NewClient(ClientConfig{Name: "program", PID: 7})
	if err != nil {
		t.Fatal(err)
	}
	log := NewCommandLog(2)
	c := log.Client(plain)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var pds []command.Handle
	for _, adapter := range []uint32{0, 1} {
		pd, err := c.AllocPD(bg, adapter)
		check(err)
		pds = append(pds, pd)
		cq, err := c.CreateCQ(bg, command.CreateCQ{Adapter: adapter, Depth: 8})
		check(err)
		qp, err := c.CreateQP(bg, command.CreateQP{PD: pd, Type: command.RC, SendCQ: cq.Handle, RecvCQ: cq.Handle, SendDepth: 1, RecvDepth: 1})
		check(err)
		if _, err := c.QueryQP(bg, qp.Handle); err != nil {
			t.Fatal(err)
		}
		if c.Destroy(bg, command.KindCQ, cq.Handle) == nil {
			t.Fatal("a CQ in use was destroyed")
		}
		check(c.Destroy(bg, command.KindQP, qp.Handle)) // the next one has its place
		check(c.Destroy(bg, command.KindCQ, cq.Handle))
	}
	id, err := c.CMCreate(bg, command.CMCreate{Adapter: anyAdapter, Space: command.TCP})
	check(err)
	if _, err := c.CMBind(bg, id, command.Endpoint{Addr: command.AddrFrom(second), Port: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.QueryQP(bg, 0); err == nil {
		t.Fatal("no QP was found")
	}
	for adapter, want := range []map[string][2]uint64{
		{"ALLOC_PD": {1, 0}, "CREATE_CQ": {1, 0}, "CREATE_QP": {1, 0}, "QUERY_QP": {1, 0}, "DESTROY": {3, 1}},
		{"ALLOC_PD": {1, 0}, "CREATE_CQ": {1, 0}, "CREATE_QP": {1, 0}, "QUERY_QP": {1, 0}, "DESTROY": {3, 1}, "CM_BIND": {1, 0}},
	} {
		got := map[string][2]uint64{}
		for _, s := range log.Stats(uint32(adapter)) {
			got[s.Command] = [2]uint64{s.Count, s.Failed}
			if s.Total <= 0 || s.Longest > s.Total || s.Longest <= 0 {
				t.Errorf("%s: %v in all, %v the longest", s.Command, s.Total, s.Longest)
			}
		}
		if len(got) != len(want) {
			t.Errorf("adapter %d: %v, want %v", adapter, got, want)
		}
		for name, n := range want {
			if got[name] != n {
				t.Errorf("adapter %d: %s %v, want %v", adapter, name, got[name], n)
			}
		}
	}
	recent := log.Recent(0)
	if len(recent) != 7 || recent[0].Command != "ALLOC_PD" || recent[4].Failure != command.Busy || recent[4].Program != "program" || recent[4].PID != 7 {
		t.Errorf("%+v", recent)
	}
	for range 2 * keptCommands {
		_, err := c.CreateAH(bg, command.CreateAH{PD: pds[0]}) // it has no such PD any more, or no address
		if err == nil {
			t.Fatal("made")
		}
	}
	if recent = log.Recent(0); len(recent) != keptCommands || recent[0].Command != "CREATE_AH" || recent[0].Began.After(recent[1].Began) {
		t.Errorf("%d records, %+v first", len(recent), recent[0])
	}
}

func TestInspect(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	index := h.add(t, AdapterConfig{Addr: loopback(), Name: "one"})
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
		t.Errorf("%+v", s)
	}
	if q := s.QPs[0]; q.Program != "program" || q.PID != 7 || q.Number >= s.QPs[1].Number || q.Type != command.RC {
		t.Errorf("%+v", q)
	}
	if s.Counters.Name != "one" || s.Counters.Objects.QP != 3 || s.Limits.QP != DefaultLimits().QP || len(s.PKeys) != 1 || s.PKeys[0] != 0xffff || s.CQs[0].Users != 2 {
		t.Errorf("%+v", s)
	}
	if _, err := h.Inspect(9, 1); err == nil {
		t.Error("there is no adapter 9")
	}
}
