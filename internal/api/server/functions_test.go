package server

import (
	"reflect"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

func (f *fake) Functions() []api.FunctionStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []api.FunctionStatus{{Adapter: "Ethernet 1", Name: "red"}}
}

func (f *fake) CreateFunction(q api.FunctionRequest) (api.FunctionStatus, error) {
	return api.FunctionStatus{Name: q.Name}, f.did(q)
}

func (f *fake) SetFunction(q api.FunctionRequest) error { return f.did(q) }

func (f *fake) RemoveFunction(name string) error { return f.did(name) }

func (f *fake) ResetFunction(name string) error { return f.did("reset " + name) }

// TestFunctions_Requests: what the client is asked for reaches the driver with the function's name, also one with letters that a path
// cannot have as they are.
func TestFunctions_Requests(t *testing.T) {
	b, ctx := serve(t, Config{}), t.Context()
	if list, err := b.client.Functions(ctx); err != nil || len(list) != 1 || list[0].Name != "red" {
		t.Errorf("%+v, %v", list, err)
	}
	const name = "a/b c"
	q := api.FunctionRequest{Adapter: "Ethernet 1", Name: name, Settings: []string{"vlan=7"}}
	for _, c := range []struct {
		ask  func() error
		want any
	}{
		{func() error { _, err := b.client.CreateFunction(ctx, q); return err }, q},
		{func() error { return b.client.SetFunction(ctx, api.FunctionRequest{Name: name, Settings: q.Settings}) },
			api.FunctionRequest{Name: name, Settings: q.Settings}},
		{func() error { return b.client.RemoveFunction(ctx, name) }, name},
		{func() error { return b.client.ResetFunction(ctx, name) }, "reset " + name},
	} {
		if err := c.ask(); err != nil || !reflect.DeepEqual(b.last, c.want) {
			t.Errorf("%+v, %v; want %+v", b.last, err, c.want)
		}
	}
}
