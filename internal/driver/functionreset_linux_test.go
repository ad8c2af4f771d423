package driver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/healing"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/verbs"
)

// The addresses of the virtual functions "red" and "blue" of adapter "a", and of adapter "b".
var (
	redAt   = netip.MustParseAddr("192.0.2.11")
	blueAt  = netip.MustParseAddr("192.0.2.12")
	otherAt = netip.MustParseAddr("192.0.2.2")
)

// resettable starts a driver in which faults may be made, with two virtual functions whose programs talk with the other adapter.
func resettable(t *testing.T) (d *Driver, red, blue *talker) {
	t.Helper()
	cfg := hosting(t)
	cfg.FaultInjection = true
	for i := range cfg.Adapters {
		cfg.Adapters[i].Path = "wire"
	}
	d = start(t, cfg)
	t.Cleanup(func() { stop(t, d) })
	if why := d.NoAttach(); why != "" {
		t.Skip(why)
	}
	usual(t, d, "a") // nothing is found stuck because the machine stalls
	var talkers []*talker
	for i, at := range []netip.Addr{redAt, blueAt} {
		name := []string{"red", "blue"}[i]
		if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: name, Settings: []string{"address=" + at.String() + "/24"}}); err != nil {
			t.Fatal(err)
		}
		talkers = append(talkers, talkAs(t, paths.Function(cfg.Socket, name), cfg.Socket, at, otherAt, uint16(7000+i)))
	}
	return d, talkers[0], talkers[1]
}

// TestVFReset: by name and by OID_SRIOV_RESET_VF one virtual function is reset: the connection of its program ends, and it goes on with
// another one; the connection of the other function's program does not end, and what it gets is what was sent.
func TestVFReset(t *testing.T) {
	t.Parallel()
	d, red, blue := resettable(t)
	ended := blue.again.Load()
	for name, reset := range map[string]func() error{ // in any order
		"name": func() error { return d.ResetFunction("red") },
		"OID":  func() error { return d.SetOID(api.OIDRequest{Adapter: "a", OID: "0x00010255", Buffer: "800106000000"}) },
	} {
		before := red.again.Load()
		if err := reset(); err != nil {
			t.Fatalf("by %s: %v", name, err)
		}
		await.Eventually(t, "the end of the connection", func() bool { return red.again.Load() > before })
		red.proceeds(t, 2)
		blue.proceeds(t, 2)
	}
	if blue.again.Load() != ended {
		t.Error("the connection of the other virtual function has ended")
	}
	wantEvent(t, d, "VFReset", "a: virtual function 0 (red)")
}

// TestVFReset_Refused: what a request for a reset may be is said, and what is wrong.
func TestVFReset_Refused(t *testing.T) {
	d := tenanted(t)
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "red"}); err != nil {
		t.Fatal(err)
	}
	oid := func(adapter, buffer string) error {
		return d.SetOID(api.OIDRequest{Adapter: adapter, OID: "10255", Buffer: buffer})
	}
	_, query := d.QueryOID("a", "0x00010255")
	for want, err := range map[string]error{
		`virtual function is "none"; allowed: "red"`: d.ResetFunction("none"), "80010600": oid("a", "00"),
		"buffer is \"800106000\"": oid("a", "800106000"), "buffer is \"810106000000\"": oid("a", "810106000000"),
		"in buffer is 1; allowed: 0": oid("a", "800106000100"), "no virtual functions that work": oid("b", "800106000000"),
		"can be set, not queried": query,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := d.SetAdapter(api.AdapterRequest{Adapter: "a", Enable: false}); err != nil {
		t.Fatal(err)
	}
	if err := d.ResetFunction("red"); !errors.Is(err, api.ErrUnsupported) || !strings.Contains(err.Error(), "disabled with its adapter") {
		t.Errorf("while its adapter is disabled: %v", err)
	}
}

// TestVFReset_ProgramIsTold: a program is told by IBV_EVENT_DEVICE_FATAL, and what it had is removed; on the same attachment it makes
// anew what it needs.
func TestVFReset_ProgramIsTold(t *testing.T) {
	d := tenanted(t)
	if why := d.NoAttach(); why != "" {
		t.Skip(why)
	}
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "red", Settings: []string{"address=192.0.2.11/24"}}); err != nil {
		t.Fatal(err)
	}
	h, err := verbs.Open(t.Context(), verbs.Options{Mode: verbs.Attached, Socket: paths.Function(d.cfg.Socket, "red"), Name: "told"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	side, err := newCheckSide(h, redAt, 4096, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer side.close()
	w := h.Watch()
	defer w.Close()
	if err := d.ResetFunction("red"); err != nil {
		t.Fatal(err)
	}
	for {
		e, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == verbs.EventDeviceFatal {
			break
		}
	}
	if err := side.qp.PostSend(&verbs.SendWR{Op: verbs.OpSend}); !errors.Is(err, verbs.ErrRemoved) {
		t.Error("a request to what was there before: ", err)
	}
	again, err := newCheckSide(h, redAt, 4096, verbs.LocalWrite)
	if err != nil {
		t.Fatal("the function does not open again: ", err)
	}
	if err := again.close(); err != nil {
		t.Error(err)
	}
}

// TestVFReset_CommandsHang: a virtual function whose commands do not return is reset, which ends what they wait for; commands of others
// return all the while.
func TestVFReset_CommandsHang(t *testing.T) {
	d, _, blue := resettable(t)
	if err := d.InjectFault(api.FaultRequest{Adapter: "red", Fault: "panic"}); err == nil || !strings.Contains(err.Error(), "allowed: command") {
		t.Errorf("another fault: %v", err)
	}
	c, err := client.Dial(t.Context(), paths.Function(d.cfg.Socket, "red"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := d.InjectFault(api.FaultRequest{Adapter: "red", Fault: "command"}); err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = c.AllocPD(context.Background(), 0) // carried out after the reset, or refused
	}()
	await.Eventually(t, "a command that does not return", func() bool { return len(d.commands.Pending(0)) > 0 })
	blue.proceeds(t, 2)
	if err := d.ResetFunction("red"); err != nil {
		t.Fatal(err)
	}
	<-answered
	if _, err := c.AllocPD(t.Context(), 0); err != nil {
		t.Errorf("a command after the reset: %v", err)
	}
}

// TestVFReset_BySelfHealing: the sensor of commands finds the virtual function whose commands do not return, and that one alone is reset:
// its programs go on, the other function's notice nothing, and the adapter is not restarted.
func TestVFReset_BySelfHealing(t *testing.T) {
	systemtest.Mark(t)
	d, red, blue := resettable(t)
	ended, before := blue.again.Load(), red.again.Load()
	if err := d.InjectFault(api.FaultRequest{Adapter: "red", Fault: "command"}); err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), paths.Function(d.cfg.Socket, "red"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { _, _ = c.AllocPD(context.Background(), 0) }()
	await.Eventually(t, "a command that does not return", func() bool { return len(d.commands.Pending(0)) > 0 })
	quick(t, d, "a")
	await.Eventually(t, "a reset", func() bool { return red.again.Load() > before })
	usual(t, d, "a")
	red.proceeds(t, 2)
	blue.proceeds(t, 2)
	if n := d.healingStatus(0).Restarts; n != 0 || blue.again.Load() != ended {
		t.Errorf("the adapter was restarted %d times, the connection of the other virtual function has ended %d times", n, blue.again.Load()-ended)
	}
	if c := d.healing.counters(0); c.Of(healing.Command) == 0 {
		t.Error("the sensor has found nothing")
	}
	wantEvent(t, d, "VFReset", "a: virtual function 0 (red)")
}

// TestVFReset_WithRecovery: while self-healing recovers the adapter's port, whatever has gone wrong there, resets of its virtual functions
// return, and in the end the programs of all of them talk again (WinOF 5.50, Bug Fixes History, 1333906).
func TestVFReset_WithRecovery(t *testing.T) {
	systemtest.Mark(t)
	for _, fault := range []string{"wire", "command", "loop", "panic"} {
		t.Run(fault, func(t *testing.T) {
			d, red, blue := resettable(t)
			own := talk(t, d.cfg.Socket, netip.MustParseAddr("192.0.2.1"), otherAt, 7009)
			restarts := func() uint64 { return d.healingStatus(0).Restarts }
			quick(t, d, "a")
			if err := d.InjectFault(api.FaultRequest{Adapter: "a", Fault: fault}); err != nil {
				t.Fatal(err)
			}
			d.host.Wake()
			resets := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				n := 0
				for ctx.Err() == nil {
					if err := d.ResetFunction("red"); err == nil {
						n++
					}
				}
				if n == 0 && !await.Until(func() bool { return d.ResetFunction("red") == nil }) {
					resets <- fmt.Errorf("no reset of many succeeded")
				}
				close(resets)
			}()
			if fault == faultCommand {
				c, err := client.Dial(t.Context(), d.cfg.Socket, client.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				go func() { _, _ = c.AllocPD(context.Background(), 0) }()
			}
			await.Eventually(t, "a recovery", func() bool { return restarts() > 0 })
			cancel()
			if err := <-resets; err != nil {
				t.Error(err)
			}
			usual(t, d, "a")
			own.proceeds(t, 2)
			red.proceeds(t, 2)
			blue.proceeds(t, 2)
		})
	}
}
