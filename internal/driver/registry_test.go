package driver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/lock"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

const roceKey = `HKLM\SYSTEM\CurrentControlSet\Services\mlx5\Parameters\Roce`

// quiet returns a configuration with two adapters that checks nothing at the start.
func quiet(t *testing.T) config.Config {
	cfg := twoAdapters(t)
	cfg.SkipSelfCheck = true
	return cfg
}

func set(t *testing.T, d *Driver, adapter, key, value string) {
	t.Helper()
	if _, err := d.Set(adapter, key, &value); err != nil {
		t.Fatal(err)
	}
}

func restart(t *testing.T, d *Driver, adapter string) {
	t.Helper()
	if err := d.RestartAdapter(adapter); err != nil {
		t.Fatal(err)
	}
}

// raised returns the symbols and texts of the logged events.
func raised(t *testing.T, d *Driver) []string {
	t.Helper()
	p, err := d.events.Query(events.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range p.Events {
		out = append(out, e.Symbol+": "+e.Message)
	}
	return out
}

// wantEvent waits for an event: what raises it may be a thread of the driver that has counted before it tells.
func wantEvent(t *testing.T, d *Driver, symbol string, words ...string) {
	t.Helper()
	var all []string
	if await.Until(func() bool {
		all = raised(t, d)
		return slices.ContainsFunc(all, func(e string) bool {
			return strings.HasPrefix(e, symbol+": ") && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e, w) })
		})
	}) {
		return
	}
	t.Errorf("no event %s with %q among\n%s", symbol, words, strings.Join(all, "\n"))
}

func TestKeysSurviveARestartOfTheDriver(t *testing.T) {
	cfg := quiet(t)
	d := start(t, cfg)
	set(t, d, "left", "roce_udp_dport", "1021")
	stop(t, d)
	d = start(t, cfg)
	defer stop(t, d)
	if s := d.Status(); s.Adapters[0].UDPPort != 1021 || s.Adapters[1].UDPPort != 1021 {
		t.Errorf("the UDP ports are %d and %d, want 1021 for both: the key is the driver's", s.Adapters[0].UDPPort, s.Adapters[1].UDPPort)
	}
}

// TestPendingUntilRestart: a key that takes effect at a restart is pending until then.
func TestPendingUntilRestart(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	set(t, d, "left", "RoceMaxFrameSize", "1024")
	s := d.Status().Adapters[0]
	if s.ActiveMTU != 4096 || !s.Pending {
		t.Errorf("before the restart: MTU %d, pending %v", s.ActiveMTU, s.Pending)
	}
	setting := func() api.Setting {
		all, err := d.Settings("left")
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(s api.Setting) bool { return s.Name == "RoceMaxFrameSize" })
		return all[i]
	}
	if s := setting(); !s.Pending || !s.Automatic || s.Stored == nil || *s.Stored != "1024" {
		t.Errorf("before the restart: %+v", s)
	}
	restart(t, d, "left")
	s = d.Status().Adapters[0]
	if s.ActiveMTU != 1024 || s.Pending || !s.Up {
		t.Errorf("after the restart: MTU %d, pending %v, up %v", s.ActiveMTU, s.Pending, s.Up)
	}
	if s := setting(); s.Pending || s.Value != "1024" {
		t.Errorf("after the restart: %+v", s)
	}
	if _, err := d.Set("left", "RoceMaxFrameSize", nil); err != nil {
		t.Fatal(err)
	}
	restart(t, d, "left")
	if s := d.Status().Adapters[0]; s.ActiveMTU != 4096 {
		t.Errorf("with the key deleted the MTU is %d, want 4096", s.ActiveMTU)
	}
}

// TestRoCEMode: a mode that the adapter cannot have is replaced by the best that it can have, with an event (WinOF-2
// 1.21, RoCE).
func TestRoCEMode(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	set(t, d, "left", "roce_mode", "0")
	restart(t, d, "left")
	if s := d.Status().Adapters[0]; s.RoCE != "v2" || !s.Up {
		t.Errorf("v1 over UDP: %s, up %v", s.RoCE, s.Up)
	}
	wantEvent(t, d, "RoCEModeRefused", "left", "v1", "v2")
	set(t, d, "left", "roce_mode", "4")
	restart(t, d, "left")
	left, right := d.Status().Adapters[0], d.Status().Adapters[1]
	if left.RoCE != "none" || !left.Up || len(left.GIDs) != 0 || !left.Enabled || right.RoCE != "v2" || !right.Up {
		t.Errorf("off: left %s up %v enabled %v, right %s up %v", left.RoCE, left.Up, left.Enabled, right.RoCE, right.Up)
	}
	h := attach(t, d)
	if _, err := newCheckSide(h, left.Addresses[0], 4096, verbs.LocalWrite); err == nil {
		t.Error("an adapter without RoCE made a queue pair")
	}
	set(t, d, "left", "roce_mode", "2")
	restart(t, d, "left")
	if s := d.Status().Adapters[0]; s.RoCE != "v2" || !s.Up {
		t.Errorf("on again: %s, up %v", s.RoCE, s.Up)
	}
	if _, err := ping(t.Context(), attach(t, d), left.Addresses[0], right.Addresses[0]); err != nil {
		t.Errorf("on again: %v", err)
	}
}

// attach attaches a program to the driver.
func attach(t *testing.T, d *Driver) *verbs.Host {
	t.Helper()
	if d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	h, err := verbs.Attach(ctx, d.cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// TestLogNumQp: LogNumQp 10 allows 1024 queue pairs.
func TestLogNumQp(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	set(t, d, "left", "LogNumQp", "10")
	restart(t, d, "left")
	h := attach(t, d)
	dev, err := h.DeviceByAddr(d.cfg.Adapters[0].Address)
	if err != nil {
		t.Fatal(err)
	}
	if got := dev.Limits().MaxQP; got != 1024 {
		t.Errorf("%d queue pairs, want 1024", got)
	}
}

// TestStoredValueThatIsNotAllowed: for a stored value that is not allowed the default is used, and an event says so.
func TestStoredValueThatIsNotAllowed(t *testing.T) {
	cfg := quiet(t)
	d := start(t, cfg)
	p, err := registry.ParsePath(roceKey)
	if err != nil {
		t.Fatal(err)
	}
	bad := registry.Change{Kind: registry.SetValue, Key: p, Value: registry.DWord("roce_udp_dport", 70000)}
	var refused *catalogue.ValueError
	if _, err := d.ChangeRegistry([]registry.Change{bad}, false); !errors.As(err, &refused) ||
		!strings.Contains(err.Error(), "allowed: 1 to 65535") {
		t.Errorf("a checked change: error %v, want one with the allowed values", err)
	}
	if _, ok := d.registry.Get(p, "roce_udp_dport"); ok {
		t.Error("a refused value was stored")
	}
	if _, err := d.ChangeRegistry([]registry.Change{bad}, true); err != nil {
		t.Fatal(err)
	}
	stop(t, d)
	d = start(t, cfg)
	defer stop(t, d)
	if s := d.Status().Adapters[0]; s.UDPPort != 4791 || !s.Up {
		t.Errorf("UDP port %d, up %v; want 4791 and up", s.UDPPort, s.Up)
	}
	wantEvent(t, d, "RegistryValueIgnored", "roce_udp_dport", "70000", "4791")
}

// TestFrameThatTheLinkCannotCarry: a frame size beyond what the link can carry is replaced by the largest it can,
// with an event.
func TestFrameThatTheLinkCannotCarry(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	d.changes.Lock()
	k := d.keys(0)
	k.RoceMaxFrameSize, k.fromRegistry = 1<<20, true
	if err := d.host.SetAdapterState(0, false); err != nil {
		t.Fatal(err)
	}
	err := d.enable(0, k)
	d.changes.Unlock()
	if err == nil {
		t.Error("a frame of a megabyte was accepted")
	}
	restart(t, d, "left")
}

// TestRestartThatFails: a restart that fails leaves the adapter as it was and logs the event of its generation (WinOF
// 5.50, 6.7 has one).
func TestRestartThatFails(t *testing.T) {
	for generation, says := range map[string]string{"mlx5": "could not be started", "mlx4": "could not be initialized"} {
		cfg := quiet(t)
		cfg.Adapters[0].Generation = generation
		cfg.Adapters[1] = config.Adapter{Name: "right", Address: cfg.Adapters[0].Address, UDPPort: 1021}
		d := start(t, cfg)
		set(t, d, "left", "roce_udp_dport", "1021")
		if err := d.RestartAdapter("left"); err == nil {
			t.Error("an adapter took the port of another")
		}
		if s := d.Status().Adapters[0]; !s.Up || s.UDPPort != 4791 || !s.Pending {
			t.Errorf("up %v, UDP port %d, pending %v; want up, 4791, pending", s.Up, s.UDPPort, s.Pending)
		}
		wantEvent(t, d, "AdapterStartFailed", "left", says, "in use")
		stop(t, d)
	}
}

func TestGeneration(t *testing.T) {
	cfg := quiet(t)
	cfg.Adapters[0].Generation = "mlx4"
	d := start(t, cfg)
	defer stop(t, d)
	if s := d.Status(); s.Adapters[0].Generation != "mlx4" || s.Adapters[1].Generation != "mlx5" {
		t.Errorf("the generations are %s and %s, want mlx4 and mlx5", s.Adapters[0].Generation, s.Adapters[1].Generation)
	}
	set(t, d, "left", "roce_mode", "5") // which mlx5 does not have
	five := "5"
	if _, err := d.Set("right", "roce_mode", &five); err == nil {
		t.Error("an mlx5 adapter accepted a mode of mlx4")
	}
	p, _ := registry.ParsePath(strings.Replace(roceKey, "mlx5", "mlx4_bus", 1))
	if v, ok := d.registry.Get(p, "roce_mode"); !ok || v.Show() != "0x5" {
		t.Errorf("stored %v (%v), want 0x5", v.Show(), ok)
	}
}

func TestCorruptRegistryIsSetAside(t *testing.T) {
	cfg := quiet(t)
	if err := os.MkdirAll(cfg.State, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(cfg.State, registry.FileName)
	if err := os.WriteFile(file, []byte(strings.Repeat("rubbish", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, cfg)
	defer stop(t, d)
	wantEvent(t, d, "RegistrySetAside", registry.FileName)
	if b, err := os.ReadFile(file + ".corrupt-1"); err != nil || !strings.HasPrefix(string(b), "rubbish") {
		t.Errorf("the corrupt file was not kept: %v", err)
	}
	if s := d.Status(); !s.Adapters[0].Up || s.Volatile != "" {
		t.Errorf("up %v, volatile %q; want up and nothing", s.Adapters[0].Up, s.Volatile)
	}
}

// TestRegistryThatIsOpenElsewhere: a driver does not start with a registry that another process has open.
func TestRegistryThatIsOpenElsewhere(t *testing.T) {
	t.Parallel()
	cfg := quiet(t)
	if err := os.MkdirAll(cfg.State, 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := registry.Open(cfg.State)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := Start(t.Context(), cfg, Options{}); !errors.Is(err, lock.ErrRunning) {
		t.Errorf("got %v, want ErrRunning", err)
	}
}
