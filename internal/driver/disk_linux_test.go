package driver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestReadOnlyStateDirectory: with a state directory that cannot be written to the driver runs, says that nothing is
// kept, and changes are in force until it ends.
func TestReadOnlyStateDirectory(t *testing.T) {
	systemtest.Mark(t)
	cfg := quiet(t)
	stop(t, start(t, cfg)) // leaves its files
	namespace.Mounts(t, func() error {
		if err := unix.Mount(cfg.State, cfg.State, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		return unix.Mount("", cfg.State, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}, func() {
		if err := os.WriteFile(filepath.Join(cfg.State, "x"), nil, 0o600); err == nil {
			t.Error("the directory is still writable")
			return
		}
		d, err := Start(t.Context(), cfg, Options{Version: "test"})
		if err != nil {
			t.Error(err)
			return
		}
		s := d.Status()
		if !strings.Contains(s.Volatile, "read-only file system") || !s.Adapters[0].Up {
			t.Errorf("volatile %q, up %v; want the reason, and the adapter up", s.Volatile, s.Adapters[0].Up)
		}
		wantEvent(t, d, "NothingKept", "registry", "read-only")
		value := "1024"
		notices, err := d.Set("left", "RoceMaxFrameSize", &value)
		if err != nil {
			t.Error(err)
		}
		if n := len(notices); n != 2 || notices[1].Effect != "not kept" || !strings.Contains(notices[1].Text, "read-only file system") {
			t.Errorf("a change that is not kept says %+v", notices)
		}
		key, _ := registry.ParsePath(`HKLM\SYSTEM\CurrentControlSet\Services\mlx5\Parameters\Roce`)
		notices, err = d.ChangeRegistry([]registry.Change{{Kind: registry.CreateKey, Key: key}}, false)
		if err != nil || len(notices) != 1 || notices[0].Name != key.String() {
			t.Errorf("a key that is not kept: %+v, %v", notices, err)
		}
		if err := d.RestartAdapter("left"); err != nil {
			t.Error(err)
		}
		if got := d.Status().Adapters[0].ActiveMTU; got != 1024 {
			t.Errorf("the MTU is %d after the restart, want 1024", got)
		}
		if _, err := Start(t.Context(), cfg, Options{}); err == nil {
			t.Error("a second driver started with the same directory")
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}
