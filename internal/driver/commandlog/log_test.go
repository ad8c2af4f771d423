package commandlog

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// Each command is logged for the adapter of the object that it names, failed ones as failed; a command that concerns
// no adapter is not logged. An object with the handle of a destroyed one of another adapter is logged for its own
// adapter.
func TestCommandLog(t *testing.T) {
	h, err := device.NewHost(device.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	addrs := loopback.Pair()
	for _, addr := range addrs {
		if _, err := h.AddAdapter(device.AdapterConfig{Addr: addr}); err != nil {
			t.Fatal(err)
		}
	}
	plain, err := h.NewClient(device.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	log := New(2)
	c := log.Client(plain, "program", 7)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var pds []command.Handle
	for _, adapter := range []uint32{0, 1} {
		pd, err := c.AllocPD(t.Context(), adapter)
		check(err)
		pds = append(pds, pd)
		cq, err := c.CreateCQ(t.Context(), command.CreateCQ{Adapter: adapter, Depth: 8})
		check(err)
		qp, err := c.CreateQP(t.Context(), command.CreateQP{PD: pd, Type: command.RC, SendCQ: cq.Handle, RecvCQ: cq.Handle, SendDepth: 1, RecvDepth: 1})
		check(err)
		if _, err := c.QueryQP(t.Context(), qp.Handle); err != nil {
			t.Fatal(err)
		}
		if c.Destroy(t.Context(), command.KindCQ, cq.Handle) == nil {
			t.Fatal("a CQ in use was destroyed")
		}
		if err := c.Destroy(device.Promptly(t.Context()), command.KindMemory, qp.Handle); !errors.Is(err, device.ErrWaits) {
			t.Fatalf("%v, want ErrWaits: a command that is not carried out is not logged", err)
		}
		check(c.Destroy(t.Context(), command.KindQP, qp.Handle)) // the next adapter's QP takes its slot
		check(c.Destroy(t.Context(), command.KindCQ, cq.Handle))
	}
	id, err := c.CMCreate(t.Context(), command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	check(err)
	if _, err := c.CMBind(t.Context(), id, command.Endpoint{Addr: command.AddrFrom(addrs[1]), Port: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.QueryQP(t.Context(), 0); err == nil {
		t.Fatal("QueryQP of handle 0 gives no error")
	}
	for adapter, want := range []map[string][2]uint64{
		{"ALLOC_PD": {1, 0}, "CREATE_CQ": {1, 0}, "CREATE_QP": {1, 0}, "QUERY_QP": {1, 0}, "DESTROY": {3, 1}},
		{"ALLOC_PD": {1, 0}, "CREATE_CQ": {1, 0}, "CREATE_QP": {1, 0}, "QUERY_QP": {1, 0}, "DESTROY": {3, 1}, "CM_BIND": {1, 0}},
	} {
		got := map[string][2]uint64{}
		for _, s := range log.Stats(uint32(adapter)) {
			got[s.Command] = [2]uint64{s.Count, s.Failed}
			if s.Total <= 0 || s.Longest > s.Total || s.Longest <= 0 {
				t.Errorf("%s: took %v in all and %v the longest, want 0 < longest <= all", s.Command, s.Total, s.Longest)
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
		t.Errorf("recent commands %+v; want 7 from ALLOC_PD on, the fifth of them failed as busy", recent)
	}
	for range 2 * keptCommands {
		_, err := c.CreateAH(t.Context(), command.CreateAH{PD: pds[0]}) // the client's PD or the address is not valid
		if err == nil {
			t.Fatal("CreateAH without an address gives no error")
		}
	}
	if recent = log.Recent(0); len(recent) != keptCommands || recent[0].Command != "CREATE_AH" || recent[0].Began.After(recent[1].Began) {
		t.Errorf("%d records, %+v first; want %d, the oldest a CREATE_AH", len(recent), recent[0], keptCommands)
	}
}
