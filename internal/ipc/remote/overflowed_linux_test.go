package remote

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed"
)

// driverSide answers an agent's requests as a driver whose CQs have room does. Each of its queue pairs has a state.
type driverSide struct {
	p      *program
	states map[command.Handle]command.QPState
}

// Write implements io.Writer: what it takes is one message.
func (d *driverSide) Write(b []byte) (int, error) {
	m, err := read(bytes.NewReader(b), make([]byte, maxMessage))
	if err != nil || m.kind != request {
		return len(b), err
	}
	h, body, err := head[requestHead](m.body)
	if err != nil {
		return 0, err
	}
	var reply []byte
	switch h.Op {
	case proto.OpQueryQP:
		q, err := proto.Decode[proto.HandleArgs](body)
		if err != nil {
			return 0, err
		}
		reply = proto.Encode(command.QPInfo{Attr: command.ModifyQP{State: d.states[q.Handle]}})
	case proto.OpModifyQP:
		q, err := proto.Decode[command.ModifyQP](body)
		if err != nil {
			return 0, err
		}
		d.states[q.QP] = q.State
	}
	id := h.ID
	go func() {
		_ = d.p.message(message{kind: answer, program: 1, body: append(proto.Encode(answerHead{ID: id}), reply...)})
	}()
	return len(b), nil
}

// TestOverflowed: a CQ overflows whose program does not take what the driver's gives away. The program has the events of that once, also if
// the driver's overflows later, and queue pairs of it that work are in error then.
func TestOverflowed(t *testing.T) {
	d := &driverSide{states: map[command.Handle]command.QPState{20: command.RTS, 21: command.Init, 22: command.Reset, 23: command.Err,
		24: command.RTS}}
	a := &Agent{s: nowhere{}, out: writer{w: d}, log: slog.New(slog.DiscardHandler), programs: map[uint32]*program{}}
	d.p = newProgram(a, device.ClientConfig{NewArena: func(_ uint32, size int) ([]byte, error) { return make([]byte, size), nil }})
	p := d.p
	p.number, a.programs[1] = 1, p
	defer func() {
		p.end(errLost)
		p.work.Wait()
	}()
	tells := func(k kind, parts ...[]byte) {
		t.Helper()
		m, err := read(bytes.NewReader(said(k, 1, parts...)), make([]byte, maxMessage))
		if err == nil {
			err = a.message(m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tells(arena, proto.Encode(proto.ArenaBody{Size: 65536}))
	const depth = 8
	p.mu.Lock()
	err := p.addCQ(command.Queue{Handle: 5, Depth: depth, Stride: ring.CQESize, Ring: command.Ring{Size: 4096}},
		&command.CreateCQ{Adapter: 3})
	p.pairs = map[command.Handle]pair{20: {5, 9}, 21: {9, 5}, 22: {5, 5}, 23: {5, 5}, 24: {9, 9}}
	p.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	tells(complete, proto.Encode(completeHead{CQ: 5}), make([]byte, depth*ring.CQESize))
	if n, err := p.events.some(make([]command.Event, 1)); n != 0 || err != nil {
		t.Fatalf("%d events of a CQ that is full, %v", n, err)
	}
	for range 2 {
		tells(complete, proto.Encode(completeHead{CQ: 5}), make([]byte, ring.CQESize))
	}
	five, nine := command.Event{Type: command.EventCQError, Object: 5, Adapter: 3}, command.Event{Type: command.EventCQError, Object: 9}
	tells(events, proto.EncodeList([]command.Event{five, nine}))
	want := map[command.Event]bool{five: true, nine: true,
		{Type: command.EventQPFatal, Object: 20, Adapter: 3}: true, {Type: command.EventQPFatal, Object: 21, Adapter: 3}: true}
	for range len(want) {
		var e [1]command.Event
		if _, err := p.events.take(testbed.Context(t), e[:]); err != nil || !want[e[0]] {
			t.Fatalf("%+v, %v", e[0], err)
		}
		delete(want, e[0])
	}
	p.work.Wait()
	if n, _ := p.events.some(make([]command.Event, 1)); n != 0 {
		t.Error("there are more events")
	}
	for h, s := range map[command.Handle]command.QPState{20: command.Err, 21: command.Err, 22: command.Reset, 23: command.Err,
		24: command.RTS} {
		if d.states[h] != s {
			t.Errorf("queue pair %d is in state %d, want %d", h, d.states[h], s)
		}
	}
}
