package server

import (
	"reflect"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

func (f *fake) VirtualSwitches() []api.VirtualSwitch {
	return []api.VirtualSwitch{{Name: "s", Adapter: "Ethernet 1", IOV: true, PacketDirect: true, VFP: true, Adapters: []api.SwitchAdapter{
		{Function: "red", Name: "Network Adapter", Machine: "vm 1", RDMA: true, Blocked: true,
			Status: api.FunctionStatus{MAC: "02:00:00:00:00:01", VLAN: 7, Up: true, Counters: map[string]uint64{"blocked_sent": 5}}}}}}
}

func (f *fake) CreateVirtualSwitch(q api.SwitchRequest) (api.VirtualSwitch, error) {
	return api.VirtualSwitch{Name: q.Name}, f.did(q)
}

func (f *fake) SetVirtualSwitch(q api.SwitchSettings) error { return f.did(q) }

func (f *fake) RemoveVirtualSwitch(name string) error { return f.did(name) }

func (f *fake) AddSwitchAdapter(q api.SwitchAdapterRequest) (api.SwitchAdapter, error) {
	return api.SwitchAdapter{Function: q.Function}, f.did(q)
}

func (f *fake) SetSwitchAdapter(q api.SwitchAdapterRequest) error { return f.did(q) }

func (f *fake) RemoveSwitchAdapter(name, function string) error {
	return f.did([]string{name, function})
}

// TestVirtualSwitches_Requests: what the client is asked for reaches the driver with the names of the switch and the function, also with
// letters that a path cannot have as they are, and what it answers is shown.
func TestVirtualSwitches_Requests(t *testing.T) {
	b, ctx := serve(t, Config{}), t.Context()
	list, err := b.client.VirtualSwitches(ctx)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	var text strings.Builder
	list[0].WriteText(&text)
	const want = "virtual switch s over Ethernet 1, SR-IOV, PacketDirect, filter platform\n" +
		"  red  02:00:00:00:00:01  machine vm 1  \"Network Adapter\"  VLAN 7  up  blocked by the filter platform (frames sent 5, for it 0)  RDMA  programs 0\n"
	if text.String() != want {
		t.Errorf("%q", text.String())
	}
	const name = "a/b c"
	add := api.SwitchAdapterRequest{Switch: name, Function: "x/y", Settings: []string{"vlan=7"}}
	for _, c := range []struct {
		ask  func() error
		want any
	}{
		{func() error {
			_, err := b.client.CreateVirtualSwitch(ctx, api.SwitchRequest{Name: name, Adapter: "Ethernet 1", IOV: true})
			return err
		}, api.SwitchRequest{Name: name, Adapter: "Ethernet 1", IOV: true}},
		{func() error {
			return b.client.SetVirtualSwitch(ctx, api.SwitchSettings{Switch: name, Settings: []string{"vfp=on"}})
		}, api.SwitchSettings{Switch: name, Settings: []string{"vfp=on"}}},
		{func() error { return b.client.RemoveVirtualSwitch(ctx, name) }, name},
		{func() error { _, err := b.client.AddSwitchAdapter(ctx, add); return err }, add},
		{func() error { return b.client.SetSwitchAdapter(ctx, add) }, add},
		{func() error { return b.client.RemoveSwitchAdapter(ctx, name, "x/y") }, []string{name, "x/y"}},
	} {
		if err := c.ask(); err != nil || !reflect.DeepEqual(b.last, c.want) {
			t.Errorf("%+v, %v; want %+v", b.last, err, c.want)
		}
	}
}
