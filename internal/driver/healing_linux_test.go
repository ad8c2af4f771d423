package driver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/healing"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/verbs"
)

// fourAdapters returns a configuration in which faults may be made: "left" and "right" for them, "near" and "far" for others.
func fourAdapters(t *testing.T) config.Config {
	t.Helper()
	cfg := twoAdapters(t)
	more := loopback.Pair()
	cfg.Adapters = append(cfg.Adapters, config.Adapter{Name: "near", Address: more[0]}, config.Adapter{Name: "far", Address: more[1]})
	for i := range cfg.Adapters {
		cfg.Adapters[i].Path = "wire"
	}
	cfg.FaultInjection, cfg.SkipSelfCheck = true, true
	return cfg
}

// quick makes the sensors of an adapter look as often as they can.
func quick(t *testing.T, d *Driver, adapter string) {
	t.Helper()
	set(t, d, adapter, "SHCheckForHangTimeInSeconds", "1")
	set(t, d, adapter, "CheckForHangCQMaxNoProgress", "1")
}

// usual makes the sensors of an adapter look as seldom as they can.
func usual(t *testing.T, d *Driver, adapter string) {
	t.Helper()
	set(t, d, adapter, "SHCheckForHangTimeInSeconds", "60")
	set(t, d, adapter, "CheckForHangCQMaxNoProgress", "100")
}

// sensorOf returns a sensor's status, and how often the adapter was restarted.
func sensorOf(d *Driver, i int, s healing.Sensor) (api.SensorStatus, uint64) {
	h := d.healingStatus(i)
	return h.Sensors[slices.Index(healing.All[:], s)], h.Restarts
}

// TestSensors: for each sensor (WinOF 5.50, 4.10.1) something is made to go wrong under traffic. It is found, said as the manual says,
// dumped with the source SH, and the adapter is restarted: its program opens it again and goes on. Those on other adapters do not
// notice.
func TestSensors(t *testing.T) {
	systemtest.Mark(t)
	for _, x := range []struct {
		fault, generation string
		sensor            healing.Sensor
		events            []string
	}{
		{"wire", "mlx4", healing.SendHardware, []string{"SendHardwareStuck: left: "}},
		{"wire", "mlx5", healing.SendHardware, []string{"SendTimeout: left: send queue 0 ", "ResetByDriver: left: ", "ResetFinished: left: "}},
		{"completions", "mlx4", healing.SendSoftware, []string{"SendSoftwareStuck: left: "}},
		{"receive", "mlx4", healing.ReceiveCompletion, []string{"ReceiveCompletionError: left: "}},
		{"send", "mlx4", healing.SendCompletion, []string{"SendCompletionError: left: "}},
		{"descriptor", "mlx5", healing.ReceiveCompletion, []string{"ResetByDriver: left: "}},
		{"events", "mlx5", healing.EventQueue, []string{"EventQueueStuck: left: "}},
		{"command", "mlx5", healing.Command, []string{"SensorError: left: the sensor Command time-out, 0x00200000"}},
		{"loop", "mlx5", healing.Health, []string{"SensorError: left: the sensor Health counter, 0x00400000"}},
		{"panic", "mlx4", healing.Internal, []string{"SensorError: left: the sensor Internal error, 0x00800000"}},
	} {
		t.Run(x.fault+" "+x.generation, func(t *testing.T) {
			t.Parallel()
			cfg := fourAdapters(t)
			cfg.Adapters[0].Generation = x.generation
			d := start(t, cfg)
			defer stop(t, d)
			if why := d.NoAttach(); why != "" {
				t.Skip(why)
			}
			t.Run("", func(t *testing.T) { // the talkers end before the driver does
				victim := talk(t, cfg.Socket, cfg.Adapters[0].Address, cfg.Adapters[1].Address, 7000)
				other := talk(t, cfg.Socket, cfg.Adapters[2].Address, cfg.Adapters[3].Address, 7000)
				quick(t, d, "left")
				set(t, d, "left", "SHSensorsDumpMask", fmt.Sprint(uint32(x.sensor)))
				set(t, d, "left", "SHMPResetActiveSensorsMask", fmt.Sprint(uint32(x.sensor))) // no other is faster on a slow machine
				ended := other.again.Load()
				began := time.Now()
				if err := d.InjectFault(api.FaultRequest{Adapter: "left", Fault: x.fault}); err != nil {
					t.Fatal(err)
				}
				if x.fault == faultCommand {
					defer asks(t, cfg, 0)()
				}
				await.Eventually(t, "a restart", func() bool { _, n := sensorOf(d, 0, x.sensor); return n > 0 })
				t.Log("restarted after ", time.Since(began))
				usual(t, d, "left") // the fault is gone for good: nothing restarts what does not proceed from now on
				victim.proceeds(t, 3)
				other.proceeds(t, 3)
				if other.again.Load() != ended {
					t.Error("the connection of other adapters has ended")
				}
			})
			// A sensor that looks as often as it can may find what waits on a machine that stalls for a second stuck, too.
			var s api.SensorStatus
			var n uint64
			if !await.Until(func() bool { s, n = sensorOf(d, 0, x.sensor); return s.Count > 0 && n > 0 && !s.Error }) {
				t.Errorf("the sensor %+v, %d restarts; want an error, a restart, and nothing wrong since", s, n)
			}
			for _, o := range []int{1, 2, 3} {
				if h := d.healingStatus(o); h.Restarts != 0 {
					t.Errorf("adapter %d was restarted, too", o)
				}
			}
			all := raised(t, d)
			for _, want := range append(x.events, fmt.Sprintf("SelfHealingRestart: left: restarted because of an error that sensors %s found; restarts so far: 1.",
				x.sensor.Mask())) {
				if !slices.ContainsFunc(all, func(e string) bool { return strings.HasPrefix(e, want) }) {
					t.Errorf("no event %q in\n%s", want, strings.Join(all, "\n"))
				}
			}
			dumps, err := filepath.Glob(filepath.Join(d.temp(), "*", "dmn-left-GENERAL-SH-*"))
			if err != nil || len(dumps) == 0 || uint64(len(dumps)) > s.Count {
				t.Errorf("%d dumps of %d errors, want one or more: %v, %v", len(dumps), s.Count, dumps, err)
			}
		})
	}
}

// asks gives an adapter a command, and returns what waits for its end.
func asks(t *testing.T, cfg config.Config, adapter int) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		h, err := verbs.Open(context.Background(), verbs.Options{Mode: verbs.Attached, Socket: cfg.Socket, Name: "asker"})
		if err != nil {
			t.Error(err)
			return
		}
		defer h.Close()
		if a, err := nd.NewProvider(h).OpenAdapterAt(cfg.Adapters[adapter].Address); err == nil {
			a.Close()
		}
	}()
	return func() { <-done }
}

// TestSensorMasks: the error of a sensor that is not active is said and counted, once, and nothing is restarted, until the mask that
// says so is changed: at once, by an error that comes then (WinOF 5.50, 4.10.1.1.1 and 4.10.1.2).
func TestSensorMasks(t *testing.T) {
	t.Parallel()
	cfg := fourAdapters(t)
	cfg.Adapters[0].Generation = "mlx4"
	d := start(t, cfg)
	defer stop(t, d)
	quick(t, d, "left")
	set(t, d, "left", "SHMPResetActiveSensorsMask", fmt.Sprint(uint32(0xffffffff&^healing.ReceiveCompletion)))
	fault := func() {
		if err := d.InjectFault(api.FaultRequest{Adapter: "left", Fault: "receive"}); err != nil {
			t.Fatal(err)
		}
		d.host.Wake()
	}
	fault()
	await.Eventually(t, "an error", func() bool { s, _ := sensorOf(d, 0, healing.ReceiveCompletion); return s.Count > 0 })
	if s, n := sensorOf(d, 0, healing.ReceiveCompletion); n != 0 || !s.Error || s.Active {
		t.Errorf("%+v, %d restarts", s, n)
	}
	wantEvent(t, d, "ReceiveCompletionError", "left")
	set(t, d, "left", "SHMPResetActiveSensorsMask", fmt.Sprint(uint32(0xffffffff)))
	await.Eventually(t, "a restart", func() bool { _, n := sensorOf(d, 0, healing.ReceiveCompletion); return n == 1 })
	if s, _ := sensorOf(d, 0, healing.ReceiveCompletion); s.Error || !s.Active {
		t.Errorf("%+v", s)
	}
}

// TestAllowResetOnError: with 0 a device whose engines have broken down stays off, and is not reset on request, by command or OID; it
// works again when somebody enables it. With 1 it is (WinOF 5.50, 10).
func TestAllowResetOnError(t *testing.T) {
	t.Parallel()
	cfg := fourAdapters(t)
	cfg.Adapters[0].Generation = "mlx4"
	d := start(t, cfg)
	defer stop(t, d)
	oid := api.OIDRequest{Adapter: "left", OID: "0xFFA0C9F0", Buffer: "01"}
	if err := d.SetOID(oid); err != nil {
		t.Error(err)
	}
	wantEvent(t, d, "ResetFinished", "left")
	if err := d.SetOID(api.OIDRequest{Adapter: "left", OID: "0xFFA0C9F0", Buffer: "02"}); err == nil {
		t.Error("another buffer resets, too")
	}
	set(t, d, "left", "AllowResetOnError", "0")
	restart(t, d, "left")
	for what, err := range map[string]error{"command": d.ResetAdapter("left"), "OID": d.SetOID(oid)} {
		if !errors.Is(err, api.ErrUnsupported) || !strings.Contains(err.Error(), "AllowResetOnError is 0") {
			t.Errorf("reset by %s: %v", what, err)
		}
	}
	if err := d.InjectFault(api.FaultRequest{Adapter: "left", Fault: "panic"}); err != nil {
		t.Fatal(err)
	}
	d.host.Wake()
	await.Eventually(t, "the end of the adapter", func() bool { return d.healingStatus(0).Stopped })
	if s := d.Overview(); s.Adapters[0].Enabled || !s.Adapters[1].Enabled {
		t.Error("the adapter is not off, or another one is")
	}
	if h := api.Readiness(d.Overview()); h.Ready || !h.Live || len(h.Reasons) != 1 || h.Reasons[0].Check != "self-healing" {
		t.Errorf("the health is %+v", h)
	}
	wantEvent(t, d, "SelfHealingStop", "left", "0x00800000")
	restart(t, d, "left")
	if s := d.Overview(); !s.Adapters[0].Enabled || s.Adapters[0].Healing.Stopped || !api.Readiness(s).Ready {
		t.Error("the adapter does not work again")
	}
}

// TestFaultsAreRefused: nothing can be made to go wrong unless the configuration allows it.
func TestFaultsAreRefused(t *testing.T) {
	cfg := fourAdapters(t)
	cfg.FaultInjection = false
	d := start(t, cfg)
	defer stop(t, d)
	if err := d.InjectFault(api.FaultRequest{Adapter: "left", Fault: "panic"}); !errors.Is(err, api.ErrUnsupported) ||
		!strings.Contains(err.Error(), "fault_injection") {
		t.Error(err)
	}
	d.cfg.FaultInjection = true
	var field *api.FieldError
	if err := d.InjectFault(api.FaultRequest{Adapter: "left", Fault: "fire"}); !errors.As(err, &field) || field.Field != "fault" {
		t.Error(err)
	}
	if err := d.InjectFault(api.FaultRequest{Adapter: "left", Fault: "host"}); !errors.Is(err, api.ErrUnsupported) {
		t.Error(err)
	}
}

// TestHealing_ProgramsAreTold: what a program sees of a restart is what it sees of a disabled device (WinOF 5.50, 4.11.2): a posted
// receive ends in a flush error, new requests in ND_DEVICE_REMOVED, there is IBV_EVENT_DEVICE_FATAL, and whoever has registered for the
// adapter's status (4.11.1.1.2) is told that it is down, and up again.
func TestHealing_ProgramsAreTold(t *testing.T) {
	cfg := fourAdapters(t)
	d := start(t, cfg)
	defer stop(t, d)
	if why := d.NoAttach(); why != "" {
		t.Skip(why)
	}
	h, err := verbs.Open(t.Context(), verbs.Options{Mode: verbs.Attached, Socket: cfg.Socket, Name: "told"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	p := nd.NewProvider(h)
	defer p.Close()
	told := make(chan nd.AdapterStatus, 8)
	c := p.Control()
	reg, err := c.RegisterForAdapterStatus(cfg.Adapters[0].Address, func(_ netip.Addr, s nd.AdapterStatus) { told <- s })
	if err != nil {
		t.Fatal(err)
	}
	defer c.DeregisterForAdapterStatus(reg)
	side, err := newCheckSide(h, cfg.Adapters[0].Address, 4096, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer side.close()
	w := h.Watch()
	defer w.Close()
	if err := d.InjectFault(api.FaultRequest{Adapter: "left", Fault: "panic"}); err != nil {
		t.Fatal(err)
	}
	d.host.Wake()
	for _, want := range []nd.AdapterStatus{nd.AdapterIsDown, 0} {
		for s := range told {
			if s&nd.AdapterIsDown == want {
				break
			}
		}
	}
	for {
		if e, err := w.Next(t.Context()); err != nil || e.Type == verbs.EventDeviceFatal {
			break
		}
	}
	if a, err := p.OpenAdapterAt(cfg.Adapters[0].Address); err != nil {
		t.Error("the adapter does not open again: ", err)
	} else {
		a.Close()
	}
	if err := side.qp.PostSend(&verbs.SendWR{Op: verbs.OpSend}); !errors.Is(err, verbs.ErrRemoved) {
		t.Error("a request to what was there before: ", err)
	}
}

// TestHealing_Host: a host that takes nothing of its Ethernet function's queue makes the Ethernet function restart, and it alone: RDMA
// beside it goes on. Then the host is asked again.
func TestHealing_Host(t *testing.T) {
	t.Parallel()
	cfg := overSockets(t)
	near, far := withGuest(t, &cfg[0], "02:00:00:00:00:01"), withGuest(t, &cfg[1], "02:00:00:00:00:02")
	cfg[0].Adapters[0].Generation, cfg[0].FaultInjection = "mlx4", true
	d, other := start(t, cfg[0]), start(t, cfg[1])
	defer stop(t, d)
	defer stop(t, other)
	quick(t, d, "port")
	before := d.host.Counters()[0].Restarts
	if err := d.InjectFault(api.FaultRequest{Adapter: "port", Fault: "host"}); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "a restart", func() bool {
		far.send(t, far.frame(near.mac, "nobody reads this"))
		_, n := sensorOf(d, 0, healing.ReceiveSoftware)
		return n > 0
	})
	wantEvent(t, d, "ReceiveSoftwareStuck", "port")
	wantEvent(t, d, "SelfHealingRestart", "port", "0x00000040")
	if d.host.Counters()[0].Restarts != before {
		t.Error("the RDMA function was restarted, too")
	}
	near.gets(t, "reads again", func() { far.send(t, far.frame(near.mac, "reads again")) })
}
