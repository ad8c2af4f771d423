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

// The quota of a container is changed while it runs, back to that of the configuration too, and wrong ones are refused.
func TestContainers_SetQuota(t *testing.T) {
	cfg := twoAdapters(t)
	cfg.Containers = &config.Containers{Count: 2, Memory: 16 << 20, Quotas: map[int]config.Quota{1: {Memory: 24 << 20}}}
	cfg.SkipSelfCheck = true
	d := start(t, cfg)
	defer d.Close()
	if h := d.Status().Held.Containers; h[0].MemoryLimit != 16<<20 || h[1].MemoryLimit != 24<<20 {
		t.Errorf("as configured: %+v", h)
	}
	admin := NewAdmin(d.Config().Socket)
	memory, descriptors := uint64(32<<20), uint32(40)
	if err := admin.SetContainer(t.Context(), api.ContainerRequest{Number: 1, Memory: &memory, Descriptors: &descriptors}); err != nil {
		t.Fatal(err)
	}
	if h := d.Status().Held.Containers; h[1].MemoryLimit != memory || h[1].DescriptorsLimit != 40 ||
		h[0].MemoryLimit != 16<<20 || h[0].DescriptorsLimit != 0 {
		t.Errorf("%+v", h)
	}
	memory = 0
	if err := admin.SetContainer(t.Context(), api.ContainerRequest{Number: 1, Memory: &memory}); err != nil {
		t.Fatal(err)
	}
	if h := d.Status().Held.Containers; h[1].MemoryLimit != 24<<20 || h[1].DescriptorsLimit != 40 {
		t.Errorf("%+v", h)
	}
	memory = 1
	for want, q := range map[string]api.ContainerRequest{
		"number is 2; allowed: 0 to 1": {Number: 2}, "number is -1; allowed: 0 to 1": {Number: -1}, "memory is": {Memory: &memory},
	} {
		if err := admin.SetContainer(t.Context(), q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A container can have a virtual function alone, by a socket in a directory of its own, behind the one that keeps others away; it goes
// with the function.
func TestContainers_Function(t *testing.T) {
	cfg := hosting(t)
	cfg.Containers = &config.Containers{Count: 1}
	d := start(t, cfg)
	defer d.Close()
	f, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "red"})
	if err != nil {
		t.Fatal(err)
	}
	path := paths.FunctionContainer(d.cfg.Socket, "red")
	dir := filepath.Dir(path)
	if f.ContainerSocket != path {
		t.Errorf("it says %s, want %s", f.ContainerSocket, path)
	}
	for name, want := range map[string]os.FileMode{path: 0o666, dir: 0o711, filepath.Dir(dir): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %o", name, info, err, want)
		}
	}
	p, err := verbs.Attach(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.Devices(t.Context())
	if err != nil || len(l) != 1 {
		t.Fatalf("the container sees %d devices, %v; want its function", len(l), err)
	}
	a, err := l[0].Query()
	if now := d.Functions()[0]; err != nil || now.GUID == 0 || a.GUID != now.GUID {
		t.Errorf("the device's GUID is %x, and that of the function %x, %v", a.GUID, now.GUID, err)
	}
	p.Close()
	if err := d.RemoveFunction("red"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the function: %v", err)
	}
}
