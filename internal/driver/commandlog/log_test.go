package commandlog

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
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
	destroy := func(ctx context.Context, kind command.Kind, h command.Handle) error {
		_, err := do[proto.Empty](ctx, c, proto.OpDestroy, proto.DestroyArgs{Kind: kind, Handle: h})
		return err
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var pds []command.Handle
	for _, adapter := range []uint32{0, 1} {
		pd, err := do[command.Handle](t.Context(), c, proto.OpAllocPD, proto.AdapterArgs{Adapter: adapter})
		check(err)
		pds = append(pds, pd)
		cq, err := do[command.Queue](t.Context(), c, proto.OpCreateCQ, command.CreateCQ{Adapter: adapter, Depth: 8})
		check(err)
		qp, err := do[command.QueuePair](t.Context(), c, proto.OpCreateQP, command.CreateQP{
			PD: pd, Type: command.RC, SendCQ: cq.Handle, RecvCQ: cq.Handle, SendDepth: 1, RecvDepth: 1,
		})
		check(err)
		if _, err := do[command.QPInfo](t.Context(), c, proto.OpQueryQP, proto.HandleArgs{Handle: qp.Handle}); err != nil {
			t.Fatal(err)
		}
		if destroy(t.Context(), command.KindCQ, cq.Handle) == nil {
			t.Fatal("a CQ in use was destroyed")
		}
		if err := destroy(device.Promptly(t.Context()), command.KindMemory, qp.Handle); !errors.Is(err, device.ErrWaits) {
			t.Fatalf("%v, want ErrWaits: a command that is not carried out is not logged", err)
		}
		check(destroy(t.Context(), command.KindQP, qp.Handle)) // the next adapter's QP takes its slot
		check(destroy(t.Context(), command.KindCQ, cq.Handle))
	}
	id, err := do[command.Handle](t.Context(), c, proto.OpCMCreate, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	check(err)
	if _, err := do[command.Endpoint](t.Context(), c, proto.OpCMBind, proto.BindArgs{
		ID: id, Local: command.Endpoint{Addr: command.AddrFrom(addrs[1]), Port: 7},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := do[command.QPInfo](t.Context(), c, proto.OpQueryQP, proto.HandleArgs{}); err == nil {
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
	if len(recent) != 7 || recent[0].Command != "ALLOC_PD" || recent[4].Failure != command.Busy || recent[4].Program != "program" ||
		recent[4].PID != 7 {
		t.Errorf("recent commands %+v; want 7 from ALLOC_PD on, the fifth of them failed as busy", recent)
	}
	for range 2 * keptCommands {
		_, err := do[command.Handle](
			t.Context(),
			c,
			proto.OpCreateAH,
			command.CreateAH{PD: pds[0]},
		) // the client's PD or the address is not valid
		if err == nil {
			t.Fatal("CreateAH without an address gives no error")
		}
	}
	if recent = log.Recent(0); len(recent) != keptCommands || recent[0].Command != "CREATE_AH" || recent[0].Began.After(recent[1].Began) {
		t.Errorf("%d records, %+v first; want %d, the oldest a CREATE_AH", len(recent), recent[0], keptCommands)
	}
}

// do carries out a command as the session of an attached program does.
func do[R, Q any](ctx context.Context, c *Client, op proto.Opcode, q Q) (r R, err error) {
	reply, err := server.Execute(ctx, c, op, proto.Encode(q))
	if err != nil {
		return r, err
	}
	return proto.Decode[R](reply)
}

// TestCommandLog_EveryOperation: each operation that a program may ask for is logged for the adapter that its body names,
// whether it is carried out or refused, except those that are for no adapter. An operation that is added to the protocol
// fails here until it says which adapter it is for.
func TestCommandLog_EveryOperation(t *testing.T) {
	h, err := device.NewHost(device.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.AddAdapter(device.AdapterConfig{Addr: loopback.Pair()[0]}); err != nil {
		t.Fatal(err)
	}
	plain, err := h.NewClient(device.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	pd, err := plain.AllocPD(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range server.Shared {
		if subjects[op] == (subject{}) {
			t.Errorf("%v does not say which adapter it is for", op)
		}
	}
	for _, op := range server.Handled() {
		s := subjects[op]
		if s == (subject{}) {
			t.Errorf("%v does not say which adapter it is for", op)
			continue
		}
		if s.none {
			continue
		}
		log := New(1)
		if err := anyOf(t.Context(), log.Client(plain, "program", 7), op, s, pd); errors.Is(err, proto.ErrFrame) {
			t.Errorf("%v: no body of it was accepted: %v", op, err)
		}
		if got := log.Stats(0); len(got) != 1 || got[0].Command != op.String() || got[0].Count != 1 {
			t.Errorf("%v is logged as %+v, want once", op, got)
		}
	}
}

// anyOf carries out an operation once, with zeros but for the object that it names. Bodies have the lengths that their
// operations want, so it tries all lengths until one is right.
func anyOf(ctx context.Context, c *Client, op proto.Opcode, s subject, object command.Handle) (err error) {
	for n := range proto.MaxRequest - proto.HeaderSize {
		body := make([]byte, n)
		if s.object != nowhere && n >= s.object+4 {
			binary.LittleEndian.PutUint32(body[s.object:], uint32(object))
		}
		if _, err = server.Execute(ctx, c, op, body); !errors.Is(err, proto.ErrFrame) {
			return err
		}
	}
	return err
}
