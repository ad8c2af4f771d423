package server_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/server"
)

// recordingHost is a host whose sessions record commands and have a fake session's memory.
type recordingHost struct {
	fake.Host
	rec *fake.Recorder
}

type recordingSession struct {
	*fake.Recorder
	close func() error
}

func (s recordingSession) Close() error { return s.close() }

func (h *recordingHost) NewClient(cfg clientConfig) (server.Session, error) {
	s, err := h.Host.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	return recordingSession{h.rec, s.Close}, nil
}

// TestCommandsCarryEverything: every command reaches the driver with all its arguments, and its answer the program.
func TestCommandsCarryEverything(t *testing.T) {
	h := &recordingHost{rec: &fake.Recorder{}}
	_, path := fake.Serve(t, h, server.Config{})
	c := dial(t, path, client.Options{})
	iface := reflect.TypeFor[command.Commands]()
	for i := range iface.NumMethod() {
		name := iface.Method(i).Name
		if name == "Events" {
			continue
		}
		m := reflect.ValueOf(c).MethodByName(name)
		in := []reflect.Value{reflect.ValueOf(context.Background())}
		want := []any{}
		for j := 1; j < m.Type().NumIn(); j++ {
			v := reflect.New(m.Type().In(j)).Elem()
			fake.Fill(v)
			in = append(in, v)
			want = append(want, v.Interface())
		}
		out := m.Call(in)
		if err := out[len(out)-1].Interface(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name == "CMEstablish" { // it has no answer of its own: wait for that of the next command
			if _, err := c.CMQuery(context.Background(), 1); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([][]any{want, {command.Handle(1)}}, h.rec.LastTwo(), exported); d != "" {
				t.Errorf("%s: arguments: %s", name, d)
			}
			continue
		}
		args, ret := h.rec.Last()
		if d := cmp.Diff(want, args, exported); d != "" {
			t.Errorf("%s: arguments: %s", name, d)
		}
		if len(out) == 2 {
			if d := cmp.Diff(ret, out[0].Interface(), exported); d != "" {
				t.Errorf("%s: answer: %s", name, d)
			}
		}
	}
}

// exported makes the comparison include unnamed fields, which must stay zero.
var exported = cmp.Exporter(func(reflect.Type) bool { return true })
