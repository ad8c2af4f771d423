package driver

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/lock"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/verbs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// twoAdapters returns a configuration with two adapters at loopback addresses, and a socket and state
// directory of its own.
func twoAdapters(t *testing.T) config.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "vpi") // t.TempDir's names are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	addrs := loopback.Pair()
	return config.Config{
		Socket: filepath.Join(dir, "d.sock"), State: filepath.Join(dir, "state"),
		Adapters: []config.Adapter{{Name: "left", Address: addrs[0]}, {Name: "right", Address: addrs[1]}},
	}
}

func start(t *testing.T, cfg config.Config) *Driver {
	t.Helper()
	d, err := Start(context.Background(), cfg, Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func stop(t *testing.T, d *Driver) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestStartChecksItselfOverBothPathsAndStopsCleanly(t *testing.T) {
	cfg := twoAdapters(t)
	d := start(t, cfg)
	if got := d.Checks(); len(got) != 2 || got[0].Path != "wire" || got[1].Path != "local" {
		t.Errorf("checks %v; want the wire path, then the local one", got)
	}
	if d.Recovered() {
		t.Error("a first start counts as after a crash")
	}
	stop(t, d)
	for _, path := range []string{cfg.Socket, paths.Management(cfg.Socket)} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left behind: %v", path, err)
		}
	}
	d = start(t, cfg) // at the same place again
	if d.Recovered() {
		t.Error("a clean stop counts as a crash")
	}
	stop(t, d)
}

func TestProgramsAttachAndStatusNamesThem(t *testing.T) {
	cfg := twoAdapters(t)
	d := start(t, cfg)
	defer stop(t, d)
	if d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	h, err := verbs.Open(ctx, verbs.Options{Mode: verbs.Attached, Socket: cfg.Socket, Name: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	side, err := newCheckSide(h, cfg.Adapters[0].Address, 4096, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer side.close()
	s, err := NewAdmin(cfg.Socket).Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Adapters) != 2 || s.Adapters[0].Name != "left" || !s.Adapters[0].Up || len(s.Adapters[0].GIDs) == 0 || s.PID != os.Getpid() {
		t.Errorf("the status is %+v", s)
	}
	if q := s.Adapters[0].QPs; len(q) != 1 || q[0].Number != side.qp.Number() || q[0].Owner != "tester" || q[0].PID != os.Getpid() ||
		q[0].Type != "RC" {
		t.Errorf("the status lists the QPs %+v, want the program's one", q)
	}
	if o := d.Overview(); len(o.Adapters) != len(s.Adapters) || len(o.Adapters[0].QPs) != 0 ||
		o.Adapters[0].Objects["qp"] != s.Adapters[0].Objects["qp"] {
		t.Errorf("the overview has %+v", o.Adapters)
	}
	if len(s.Programs) != 1 || s.Programs[0].Name != "tester" || s.Programs[0].MemoryPath == "" || s.Programs[0].Objects["qp"] != 1 {
		t.Errorf("the status lists the programs %+v, want one", s.Programs)
	}
	var text strings.Builder
	s.WriteText(&text)
	for _, want := range []string{"left: up, ", "tester", "RC", "GID 0", "path auto"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text lacks %q:\n%s", want, text.String())
		}
	}
}

func TestAttachedProgramsPingEachOther(t *testing.T) {
	cfg := twoAdapters(t)
	d := start(t, cfg)
	defer stop(t, d)
	if d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	h, err := verbs.Attach(ctx, cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := ping(ctx, h, cfg.Adapters[0].Address, cfg.Adapters[1].Address); err != nil {
		t.Error(err)
	}
}

func TestStartAfterACrashClearsUp(t *testing.T) {
	cfg := twoAdapters(t)
	// What a killed driver leaves: its number in the lock file, and sockets without a listener.
	if err := os.MkdirAll(cfg.State, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cfg.State, "driver.lock"), []byte("12345\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{cfg.Socket, paths.Management(cfg.Socket)} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	d := start(t, cfg)
	if !d.Recovered() {
		t.Error("the crash was not noticed")
	}
	if _, err := NewAdmin(cfg.Socket).Status(context.Background()); err != nil {
		t.Error(err)
	}
	stop(t, d)
}

func TestSecondDriverIsRefused(t *testing.T) {
	cfg := twoAdapters(t)
	d := start(t, cfg)
	defer stop(t, d)
	if _, err := Start(context.Background(), cfg, Options{}); !errors.Is(err, lock.ErrRunning) {
		t.Errorf("with the same state directory: error %v, want %v", err, lock.ErrRunning)
	}
	other := twoAdapters(t)
	other.Socket = cfg.Socket
	if _, err := Start(context.Background(), other, Options{}); err == nil || !strings.Contains(err.Error(), cfg.Socket) &&
		d.NoAttach() == "" {
		t.Errorf("with the same socket: error %v, want one that names it", err)
	}
	if _, err := NewAdmin(cfg.Socket).Status(context.Background()); err != nil {
		t.Errorf("the first driver no longer answers: %v", err)
	}
	other = twoAdapters(t)
	other.Adapters[1].Address = cfg.Adapters[0].Address
	if _, err := Start(context.Background(), other, Options{}); err == nil || !strings.Contains(err.Error(),
		cfg.Adapters[0].Address.String()) {
		t.Errorf("with the same address: error %v, want one that names it", err)
	}
}

func TestSocketPathThatHoldsSomethingElseStays(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.SkipSelfCheck = true
	if err := os.WriteFile(cfg.Socket, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Start(context.Background(), cfg, Options{})
	if err == nil {
		defer d.Close()
		if d.NoAttach() == "" {
			t.Error("a file at the path of the socket was accepted")
		}
	}
	if b, _ := os.ReadFile(cfg.Socket); string(b) != "mine" {
		t.Error("a foreign file was removed")
	}
}

func TestSettings(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.SkipSelfCheck = true
	cfg.Adapters[0].Impairment = "loss=1% seed=7"
	cfg.Adapters[1].Disabled = true
	d := start(t, cfg)
	defer stop(t, d)
	ctx, admin := context.Background(), NewAdmin(cfg.Socket)
	status := func() (left, right AdapterStatus) {
		s, err := admin.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s.Adapters[0], s.Adapters[1]
	}
	left, right := status()
	if left.Impairment != "loss=1% seed=7" || right.Enabled || !left.Enabled {
		t.Errorf("as configured: %q, enabled %v %v", left.Impairment, left.Enabled, right.Enabled)
	}
	words, wire := []string{"delay=1ms"}, "wire"
	if err := admin.SetLink(ctx, LinkRequest{Adapter: "left", Impairment: &words, Path: &wire}); err != nil {
		t.Fatal(err)
	}
	if err := admin.SetAdapter(ctx, AdapterRequest{Adapter: "right", Enable: true}); err != nil {
		t.Fatal(err)
	}
	if left, right = status(); left.Impairment != "loss=1% delay=1ms seed=7" || left.Path != "wire" || !right.Enabled {
		t.Errorf("as set: %q, path %s, enabled %v", left.Impairment, left.Path, right.Enabled)
	}
	words = []string{"none"}
	if err := admin.SetLink(ctx, LinkRequest{Adapter: "left", Impairment: &words}); err != nil {
		t.Fatal(err)
	}
	if left, _ = status(); left.Impairment != "" {
		t.Errorf("cleared: %q", left.Impairment)
	}
	bad, air := []string{"loss=x"}, "air"
	for want, q := range map[string]LinkRequest{
		`adapter is "middle"; allowed: "left", "right"`: {Adapter: "middle", Impairment: &words},
		"want a percentage":                             {Adapter: "left", Impairment: &bad},
		`path is "air"; allowed: auto, wire`:            {Adapter: "left", Path: &air},
		"settings is empty; allowed: impairmen":         {Adapter: "left"},
	} {
		if err := admin.SetLink(ctx, q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", q, err, want)
		}
	}
}

func TestNoDriver(t *testing.T) {
	_, err := NewAdmin(filepath.Join(t.TempDir(), "none")).Status(context.Background())
	if !errors.Is(err, api.ErrNotRunning) {
		t.Errorf("got %v, want ErrNotRunning", err)
	}
}

// times returns how often an event was raised.
func times(t *testing.T, d *Driver, symbol string) (n int) {
	t.Helper()
	for _, e := range raised(t, d) {
		if strings.HasPrefix(e, symbol+": ") {
			n++
		}
	}
	return n
}
