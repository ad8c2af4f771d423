package driver

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// switchedAdapter returns a network adapter of a virtual switch.
func switchedAdapter(t *testing.T, d *Driver, function string) api.SwitchAdapter {
	t.Helper()
	for _, v := range d.VirtualSwitches() {
		for _, a := range v.Adapters {
			if a.Function == function {
				return a
			}
		}
	}
	t.Fatalf("no virtual switch has %q", function)
	return api.SwitchAdapter{}
}

// TestFilterPlatform: a machine's port where the filter platform is enabled passes nothing of a program's traffic, and counts what it
// keeps; disabled there, traffic goes on; a reset of the function, as a restart of the machine is, enables it again, and the host's
// adapter is never blocked (WinOF-2 24.4, Using PacketDirect for VM).
func TestFilterPlatform(t *testing.T) {
	systemtest.Mark(t)
	d := tenanted(t)
	if why := d.NoAttach(); why != "" {
		t.Skip(why)
	}
	if _, err := d.CreateVirtualSwitch(api.SwitchRequest{Name: "v", Adapter: "a", IOV: true}); err != nil {
		t.Fatal(err)
	}
	add := func(function string, at netip.Addr, settings ...string) *talker {
		t.Helper()
		q := api.SwitchAdapterRequest{Switch: "v", Function: function, Settings: append(settings, "address="+at.String()+"/24")}
		if _, err := d.AddSwitchAdapter(q); err != nil {
			t.Fatal(err)
		}
		return talkAs(t, paths.Function(d.cfg.Socket, function), d.cfg.Socket, at, otherAt, map[string]uint16{"red": 7000, "host": 7001}[function])
	}
	red, host := add("red", redAt, "machine=vm"), add("host", blueAt)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	silent := func() {
		t.Helper()
		was, before := red.rounds.Load(), switchedAdapter(t, d, "red")
		if !before.Blocked || !before.Status.Up {
			t.Fatalf("%+v", before)
		}
		// A program that waits for an answer that is kept back sends nothing for half a minute: another one asks for a connection.
		ctx, cancel := context.WithCancel(t.Context())
		asked := make(chan error, 1)
		go func() { asked <- red.knock(ctx) }()
		defer func() {
			cancel()
			if err := <-asked; err == nil {
				t.Error("a connection came about through a port that is blocked")
			}
		}()
		await.Eventually(t, "frames that are kept back", func() bool {
			c := switchedAdapter(t, d, "red").Status.Counters
			return c["blocked_sent"] >= before.Status.Counters["blocked_sent"]+1
		})
		if now := red.rounds.Load(); now > was+1 { // one may have been on its way
			t.Errorf("%d messages came back through a port that is blocked", now-was)
		}
		host.proceeds(t, 2)
	}
	do(d.SetVirtualSwitch(api.SwitchSettings{Switch: "v", Settings: []string{"vfp=on"}}))
	silent()
	do(d.SetSwitchAdapter(api.SwitchAdapterRequest{Switch: "v", Function: "red", Settings: []string{"vfp=off"}}))
	red.proceeds(t, 2)
	do(d.ResetFunction("red"))
	silent()
	do(d.SetVirtualSwitch(api.SwitchSettings{Switch: "v", Settings: []string{"vfp=off"}}))
	red.proceeds(t, 2)
}

// TestPacketDirect_Switch: programs of a switch's adapters have queues of frames while the switch has PacketDirect, and lose them with
// it; the adapter's key stands above both.
func TestPacketDirect_Switch(t *testing.T) {
	d := tenanted(t)
	if why := d.NoAttach(); why != "" {
		t.Skip(why)
	}
	if _, err := d.CreateVirtualSwitch(api.SwitchRequest{Name: "v", Adapter: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.AddSwitchAdapter(api.SwitchAdapterRequest{Switch: "v", Function: "red"}); err != nil {
		t.Fatal(err)
	}
	frames := func() error {
		c, err := client.Dial(t.Context(), paths.Function(d.cfg.Socket, "red"), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.FramePort(context.Background(), 0)
		return err
	}
	set := func(setting string) error {
		return d.SetVirtualSwitch(api.SwitchSettings{Switch: "v", Settings: []string{setting}})
	}
	refused := &command.Error{Code: command.Access}
	if err := frames(); !errors.Is(err, refused) {
		t.Errorf("at a switch without it: %v", err)
	}
	if err := errors.Join(set("packetdirect=on"), frames()); err != nil {
		t.Errorf("at a switch with it: %v", err)
	}
	set0 := "0"
	if _, err := d.Set("a", "*PacketDirect", &set0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(set("packetdirect=on"), d.RestartAdapter("a")); err != nil {
		t.Fatal(err)
	}
	if err := frames(); !errors.Is(err, refused) {
		t.Errorf("without the adapter's key: %v", err)
	}
	if err := errors.Join(set("packetdirect=off")); err != nil {
		t.Error(err)
	}
	if err := set("packetdirect=on"); err == nil || !strings.Contains(err.Error(), "*PacketDirect is 0") {
		t.Errorf("without the adapter's key: %v", err)
	}
}

// TestSwitchOwns: the function of a switch's adapter is not removed, and what the switch decides of it is not changed, past the switch;
// nothing has changed then. What the switch does not decide can be.
func TestSwitchOwns(t *testing.T) {
	d := tenanted(t)
	if _, err := d.CreateVirtualSwitch(api.SwitchRequest{Name: "v", Adapter: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.AddSwitchAdapter(api.SwitchAdapterRequest{Switch: "v", Function: "red"}); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"softvpi vswitch remove-adapter v red": d.RemoveFunction("Red"),
		"softvpi vswitch set v red rdma=off":   d.SetFunction(api.FunctionRequest{Name: "red", Settings: []string{"max=5", "rdma=off"}}),
		"softvpi vswitch set v red queues=2":   d.SetFunction(api.FunctionRequest{Name: "red", Settings: []string{"queues=2"}}),
		"settings is empty":                    d.SetFunction(api.FunctionRequest{Name: "red"}),
	} {
		var wrong *api.FieldError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if a := switchedAdapter(t, d, "red"); !a.RDMA || a.Status.Max != 0 || a.Status.QueuesRequested != 0 {
		t.Errorf("%+v", a)
	}
	if err := d.SetFunction(api.FunctionRequest{Name: "red", Settings: []string{"max=5"}}); err != nil {
		t.Error(err)
	}
	if err := d.RemoveSwitchAdapter("v", "red"); err != nil {
		t.Error(err)
	}
	if len(d.Functions()) != 0 {
		t.Errorf("%+v", d.Functions())
	}
}
