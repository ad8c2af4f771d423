package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/setup"
)

// pretendedSystemd is a systemd in a directory: what it has loaded from where, and what it was told.
type pretendedSystemd struct {
	serviceManager
	loaded map[string]string // files by units
	active map[string]bool
	told   []string
	failAt int // the call that fails, from 1 on; 0: none
}

func newPretendedSystemd(t *testing.T) *pretendedSystemd {
	t.Helper()
	p := &pretendedSystemd{loaded: map[string]string{}, active: map[string]bool{}}
	p.root, p.ctl = t.TempDir(), p.call
	if err := os.MkdirAll(filepath.Join(p.root, "run/systemd/system"), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *pretendedSystemd) call(args ...string) (string, error) {
	p.told = append(p.told, strings.Join(args, " "))
	if len(p.told) == p.failAt {
		return "", errors.New("it fails")
	}
	switch args[0] {
	case "show":
		return "\n" + p.loaded[args[len(args)-1]] + "\n", nil // one of several instances of a template, or none
	case "is-active":
		if !p.active[args[len(args)-1]] {
			return "", errors.New("inactive")
		}
	case "stop":
		for _, u := range args[1:] {
			delete(p.active, u)
		}
	case "daemon-reload":
		for u, file := range p.loaded {
			if _, err := os.Stat(filepath.Join(p.root, file)); err != nil && !p.active[u] {
				delete(p.loaded, u)
			}
		}
	}
	return "", nil
}

// unit puts a unit below a prefix, which is loaded then and runs.
func (p *pretendedSystemd) unit(t *testing.T, prefix, name string) {
	t.Helper()
	file := filepath.Join(prefix, systemUnitsDir, strings.Replace(name, "*", "", 1))
	if err := os.MkdirAll(filepath.Dir(filepath.Join(p.root, file)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.root, file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.loaded[name], p.active[name] = file, true
}

// remove removes the units below a prefix.
func (p *pretendedSystemd) remove(t *testing.T, prefix string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(p.root, prefix)); err != nil {
		t.Fatal(err)
	}
}

// TestSettle: what is installed goes on, what is removed stops, sockets first, and what is of a package is left alone.
func TestSettle(t *testing.T) {
	p := newPretendedSystemd(t)
	both := func(prefix string) {
		for _, u := range systemUnits {
			p.unit(t, prefix, u.name)
		}
	}
	both("/usr/local")
	asked := []string{"daemon-reload", "is-active --quiet softvpi.service"}
	if err := p.settle("/usr/local"); err != nil || !p.drives() || !slices.Equal(p.told, asked) {
		t.Errorf("installed: %v, told %q", err, p.told)
	}
	p.told = nil
	p.remove(t, "/usr/local")
	err := p.settle("/usr/local")
	if err != nil || p.drives() || len(p.loaded) != 0 || !slices.Contains(p.told, "stop softvpi-function@*.socket softvpi.socket softvpi.service") {
		t.Errorf("removed: %v, told %q, loaded %q", err, p.told, p.loaded)
	}
	both("/usr")
	if err := p.settle("/usr/local"); err != nil || !p.drives() {
		t.Errorf("a package's driver is stopped: %v, told %q", err, p.told)
	}
	p.told = nil
	p.root = t.TempDir()
	if err := p.settle("/usr/local"); err != nil || p.drives() || len(p.told) != 0 {
		t.Errorf("without a systemd: %v, told %q", err, p.told)
	}
	var none *serviceManager
	if none.settle("/usr/local") != nil || none.drives() || none.links("/usr/local") != nil {
		t.Error("nobody does something")
	}
}

// TestSettle_Repeated: whatever call fails, or is the last before setup is killed, the next setup ends as if nothing had.
func TestSettle_Repeated(t *testing.T) {
	for at := 1; ; at++ {
		p := newPretendedSystemd(t)
		for _, u := range systemUnits {
			p.unit(t, "/usr/local", u.name)
		}
		p.remove(t, "/usr/local")
		p.failAt = at
		err := p.settle("/usr/local")
		if err == nil {
			if at != 6 {
				t.Errorf("%d calls, want 5: %q", at-1, p.told)
			}
			return
		}
		p.failAt = 0
		if err := p.settle("/usr/local"); err != nil || len(p.loaded) != 0 || len(p.active) != 0 {
			t.Errorf("after call %d: %v, loaded %q, active %v", at, err, p.loaded, p.active)
		}
	}
}

// TestManagerLinks: what systemctl enable has made of a prefix's units is found, and nothing else; and that is where the units want to be.
func TestManagerLinks(t *testing.T) {
	p := newPretendedSystemd(t)
	want := []string{}
	for _, u := range systemUnits {
		dir := filepath.Join(p.root, "etc/systemd/system", u.wantedBy+".wants")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(dir, strings.Replace(u.name, "*", "red", 1))
		if err := os.Symlink("/usr/local/lib/systemd/system/"+u.file, link); err != nil {
			t.Fatal(err)
		}
		want = append(want, link)
	}
	if got := p.links("/usr/local"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := p.links("/usr"); got != nil {
		t.Errorf("%q are of others", got)
	}
	for i, text := range []string{setup.SystemFunctionSocket, setup.SystemSockets, setup.SystemUnit("/usr/local/bin/softvpi")} {
		if got := settings(text, "WantedBy"); !slices.Equal(got, []string{systemUnits[i].wantedBy}) {
			t.Errorf("%s is wanted by %q", systemUnits[i].name, got)
		}
	}
	unit := setup.SystemUnit("/usr/local/bin/softvpi")
	if !strings.Contains(unit, "--state "+systemState+" ") || filepath.Dir(systemConfig) != "/etc/softvpi" ||
		!strings.Contains(unit, "XDG_CONFIG_HOME=/etc\n") {
		t.Errorf("the driver has its configuration or its state elsewhere:\n%s", unit)
	}
}
