package server_test

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
)

// loggedSession is a session that is told of its commands.
type loggedSession struct {
	server.Session
	mu           sync.Mutex
	begun, ended map[proto.Opcode]int
}

func (s *loggedSession) Begin(op proto.Opcode, body []byte) server.Begun {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun[op]++
	return server.Begun{Op: op, Body: body}
}

func (s *loggedSession) End(b server.Begun, _ []byte, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[b.Op]++
}

type loggedHost struct {
	fake.Host
	made *loggedSession
}

func (h *loggedHost) NewClient(cfg device.ClientConfig) (server.Session, error) {
	s, err := h.Host.NewClient(cfg)
	h.made = &loggedSession{Session: s, begun: map[proto.Opcode]int{}, ended: map[proto.Opcode]int{}}
	return h.made, err
}

// TestCommandLog_EveryRequestOfAProgram: whichever way a request takes through a session (at once, beside others, without
// an answer, with descriptors), the log is told of its beginning and its end, once each.
func TestCommandLog_EveryRequestOfAProgram(t *testing.T) {
	h := &loggedHost{}
	_, path := fake.Serve(t, h, server.Config{})
	c := dial(t, path, client.Options{})
	sent := 0
	iface := reflect.TypeFor[command.Commands]()
	for i := range iface.NumMethod() {
		name := iface.Method(i).Name
		if name == "Events" || name == "CMListen" { // no request; waits in the fake session
			continue
		}
		m := reflect.ValueOf(c).MethodByName(name)
		in := []reflect.Value{reflect.ValueOf(context.Background())}
		for j := 1; j < m.Type().NumIn(); j++ {
			in = append(in, reflect.Zero(m.Type().In(j)))
		}
		m.Call(in) // refused or not
		sent++
	}
	id, _, err := c.AllocSegment(ctx, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.FreeSegment(id); err != nil {
		t.Fatal(err)
	}
	if sent += 2; sent < 25 {
		t.Fatalf("%d requests, want those of all commands", sent)
	}
	s := h.made
	s.mu.Lock()
	defer s.mu.Unlock()
	for op, n := range s.begun {
		if n != 1 || s.ended[op] != 1 {
			t.Errorf("%v: begun %d times and ended %d times, want once", op, n, s.ended[op])
		}
	}
	if len(s.begun) != sent {
		t.Errorf("%d of %d requests were logged: %v", len(s.begun), sent, s.begun)
	}
}
