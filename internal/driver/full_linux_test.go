package driver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/lock"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// smallDisk puts the state directory of a configuration on a disk of its own, and returns functions that fill it and
// free it.
func smallDisk(t *testing.T, cfg config.Config) (fill, free func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	disk := filepath.Dir(cfg.State) // the socket is there too
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=512k"); err != nil {
		t.Skip("no mounts here: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(disk, "filler")
	fill = func() {
		t.Helper()
		if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("filling the disk: %v", err)
		}
	}
	return fill, func() {
		t.Helper()
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDiskThatFillsUp: when the disk fills up under a driver, a change is refused, the former state stays and
// everything else works. With room again, changes are kept.
func TestDiskThatFillsUp(t *testing.T) {
	t.Parallel()
	cfg := quiet(t)
	fill, free := smallDisk(t, cfg)
	d := start(t, cfg)
	set(t, d, "left", "RoceMaxFrameSize", "1024")
	fill()
	changes, err := d.running[0].SetKey("RoceMaxFrameSize", new("512"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := registry.ParsePath(roceKey + `\x`)
	if err != nil {
		t.Fatal(err)
	}
	large := registry.Value{Name: "large", Type: registry.Binary, Data: make([]byte, 256<<10)}
	if _, err := d.ChangeRegistry(append(changes, registry.Change{Kind: registry.SetValue, Key: p, Value: large}), false); !errors.Is(err,
		syscall.ENOSPC) {
		t.Errorf("a change that does not fit: error %v, want ENOSPC", err)
	}
	restart(t, d, "left")
	if s := d.Status().Adapters[0]; s.ActiveMTU != 1024 || !s.Up {
		t.Errorf("after the refused change the MTU is %d, up %v; want 1024 and up", s.ActiveMTU, s.Up)
	}
	for range 10 { // more events than the last page of their file has room for
		restart(t, d, "right")
	}
	if err := d.events.Kept(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("keeping events on a full disk: error %v, want ENOSPC", err)
	}
	free()
	set(t, d, "left", "RoceMaxFrameSize", "2048")
	restart(t, d, "left")
	if err := d.events.Kept(); err != nil {
		t.Errorf("keeping events with room again: %v", err)
	}
	stop(t, d)
	d = start(t, cfg)
	defer stop(t, d)
	if s := d.Status(); s.Adapters[0].ActiveMTU != 2048 || s.Volatile != "" {
		t.Errorf("with room again the MTU is %d, volatile %q; want 2048 and nothing", s.Adapters[0].ActiveMTU, s.Volatile)
	}
}

// TestDiskThatIsFull: on a disk that is full from the start the driver runs, says that nothing is kept, and keeps
// other drivers away. What is stored already is used.
func TestDiskThatIsFull(t *testing.T) {
	for _, before := range []bool{false, true} {
		cfg := quiet(t)
		fill, _ := smallDisk(t, cfg)
		if err := os.Mkdir(cfg.State, 0o700); err != nil {
			t.Fatal(err)
		}
		if before {
			d := start(t, cfg)
			set(t, d, "left", "RoceMaxFrameSize", "1024")
			stop(t, d)
		}
		fill()
		if before { // a new adapter does not fit into the rest
			cfg.Adapters[1].Name = "new"
		}
		d := start(t, cfg)
		s := d.Status()
		if s.Volatile == "" || !s.Adapters[0].Up || !s.Adapters[1].Up {
			t.Errorf("volatile %q, up %v and %v; want a reason, and both up", s.Volatile, s.Adapters[0].Up, s.Adapters[1].Up)
		}
		if want := map[bool]uint32{false: 4096, true: 1024}[before]; s.Adapters[0].ActiveMTU != want {
			t.Errorf("MTU %d, want %d", s.Adapters[0].ActiveMTU, want)
		}
		wantEvent(t, d, "NothingKept", "registry", "no space left")
		set(t, d, "left", "RoceMaxFrameSize", "512")
		if _, err := Start(t.Context(), cfg, Options{}); !errors.Is(err, lock.ErrRunning) {
			t.Errorf("a second driver: error %v, want %v", err, lock.ErrRunning)
		}
		stop(t, d)
	}
}

// TestCaptureOnAFullDisk: a capture whose file finds no room ends and says why, and the driver itself ends well afterwards.
func TestCaptureOnAFullDisk(t *testing.T) {
	cfg := quiet(t)
	fill, _ := smallDisk(t, cfg)
	d := start(t, cfg)
	fill()
	c, err := d.CaptureToFile(CaptureRequest{Adapter: "left"}, filepath.Join(filepath.Dir(cfg.State), "capture.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the capture ends", func() bool { all := d.Captures(); return len(all) != 1 || !all[0].Running })
	if all := d.Captures(); len(all) != 1 || c.ID != all[0].ID || !strings.Contains(all[0].Problem, "no space left") {
		t.Errorf("the captures are %+v, want one that ended for want of room", all)
	}
	if err := d.Close(); err != nil {
		t.Errorf("the driver ends with %v, want no error", err)
	}
}
