package driver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/verbs"
)

// Each container attaches by a socket of its own, to the adapters that all share. What its programs make the driver hold ends
// at its quota, with an error that names it, and leaves what others have alone.
func TestContainers(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.Containers = &config.Containers{Count: 2, Memory: 16 << 20}
	cfg.SkipSelfCheck = true
	d := start(t, cfg)
	defer d.Close()
	socket := func(n int) string { return paths.Container(d.Config().Socket, n) }
	one := filepath.Dir(socket(1))
	for path, want := range map[string]os.FileMode{socket(0): 0o666, one: 0o711, filepath.Dir(one): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %o", path, info, err, want)
		}
	}
	if _, err := os.Stat(paths.Management(socket(0))); err == nil {
		t.Error("a container has the management")
	}
	if _, err := NewAdmin(socket(0)).Status(t.Context()); !errors.Is(err, api.ErrNoManagement) || errors.Is(err, api.ErrNotRunning) {
		t.Errorf("a container that asks for the status is told %v; want that this is not to be had there", err)
	}
	if _, err := NewAdmin(socket(7)).Status(t.Context()); !errors.Is(err, api.ErrNotRunning) {
		t.Errorf("at the socket of a container that there is not: %v; want that no driver runs", err)
	}
	var full error
	attached := 0
	for attached < 20 && full == nil {
		p, err := verbs.Attach(t.Context(), socket(0))
		if full = err; err == nil {
			attached++
			defer p.Close()
		}
	}
	if full == nil || !strings.Contains(full.Error(), "for container 0: allowed: 16777216 (containers.memory)") {
		t.Fatalf("after %d programs: %v", attached, full)
	}
	for _, path := range []string{socket(1), d.Config().Socket} {
		p, err := verbs.Attach(t.Context(), path)
		if err != nil {
			t.Errorf("%s, while container 0 has taken its quota: %v", path, err)
			continue
		}
		defer p.Close()
	}
	h := d.Status().Held.Containers
	if len(h) != 2 || h[0].Refused == 0 || h[0].Memory > 16<<20 || h[0].Memory == 0 || h[1].Refused != 0 || h[1].Socket != socket(1) {
		t.Errorf("the containers hold %+v", h)
	}
}
