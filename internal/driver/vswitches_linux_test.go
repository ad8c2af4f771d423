package driver

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/os/paths"
)

// TestVirtualSwitch_RDMA: a program of a switch's adapter has RDMA if the adapter has, and is told that its device is gone when that
// changes (WinOF-2 24.4, Configuring NDK for Virtual NICs); the next driver has the switch and its adapters again.
func TestVirtualSwitch_RDMA(t *testing.T) {
	cfg := hosting(t)
	cfg.VirtualSwitches = []config.VirtualSwitch{{Name: "conf", Adapter: "b",
		Adapters: []config.SwitchAdapter{{Function: "fixed", Settings: []string{"vlan=9", "rdma=off"}}}}}
	d := start(t, cfg)
	if _, err := d.CreateVirtualSwitch(api.SwitchRequest{Name: "v", Adapter: "a"}); err != nil {
		t.Fatal(err)
	}
	add := api.SwitchAdapterRequest{Switch: "v", Function: "host1", Settings: []string{"rdma=off"}}
	if _, err := d.AddSwitchAdapter(add); err != nil {
		t.Fatal(err)
	}
	// rdma makes an RDMA connection id as a program of the adapter.
	rdma := func() error {
		c, err := client.Dial(t.Context(), paths.Function(d.cfg.Socket, "host1"), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.CMCreate(t.Context(), command.CMCreate{Adapter: 0, Space: command.TCP})
		return err
	}
	if err := rdma(); !errors.Is(err, &command.Error{Code: command.Unsupported}) {
		t.Errorf("with rdma=off: %v", err)
	}
	old, err := client.Dial(t.Context(), paths.Function(d.cfg.Socket, "host1"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := d.SetSwitchAdapter(api.SwitchAdapterRequest{Switch: "v", Function: "host1", Settings: []string{"rdma=on"}}); err != nil {
		t.Fatal(err)
	}
	if err := rdma(); err != nil {
		t.Errorf("with rdma=on: %v", err)
	}
	_, err = old.CMCreate(t.Context(), command.CMCreate{Adapter: 0, Space: command.TCP})
	if !errors.Is(err, &command.Error{Code: command.Removed}) {
		t.Errorf("a program that was there before: %v", err)
	}
	if _, err := d.CreateVirtualSwitch(api.SwitchRequest{Name: "S", Adapter: "b"}); err == nil {
		t.Error("a switch has the name of a wire")
	}
	stop(t, d)

	cfg.VirtualSwitches[0].Adapters[0].Settings[0] = "vlan=10"
	d = start(t, cfg)
	defer stop(t, d)
	list := d.Status().VirtualSwitches
	if len(list) != 2 || len(list[0].Adapters) != 1 || len(list[1].Adapters) != 1 {
		t.Fatalf("the next driver: %+v", list)
	}
	if a := list[0].Adapters[0]; a.Status.VLAN != 10 || a.RDMA || !a.Configured || !a.Status.Up {
		t.Errorf("of the configuration: %+v", a)
	}
	if a := list[1].Adapters[0]; a.Function != "host1" || !a.RDMA || a.Configured || !a.Status.Up {
		t.Errorf("by command: %+v", a)
	}
	if err := rdma(); err != nil {
		t.Errorf("at the next driver: %v", err)
	}
}
