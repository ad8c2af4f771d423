package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/setup"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// systemd accepts the unit for it, and the program that the unit starts exists.
func TestUnitForSystemd(t *testing.T) {
	systemtest.Mark(t)
	systemtest.Programs(t, "systemd-analyze")
	unit, err := os.ReadFile("../../examples/systemd/softvpi.service")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	file := filepath.Join(home, "softvpi.service")
	if err := os.WriteFile(file, unit, 0o600); err != nil {
		t.Fatal(err)
	}
	verify := func() (string, error) {
		c := exec.Command("systemd-analyze", "--user", "verify", file)
		c.Env = append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+home)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := verify(); err == nil {
		t.Skipf("systemd-analyze does not miss %s/bin/softvpi: %s", home, out) // %h is not the home of the environment
	}
	if err := os.Mkdir(filepath.Join(home, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := installLinks(filepath.Join(home, "bin"), os.Args[0], []string{"softvpi"}); err != nil {
		t.Fatal(err)
	}
	if out, err := verify(); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}

// systemd accepts the units of packages and setup, the sockets with the service that they start, and the system's with what features add.
func TestUnitsOfPackages_ForSystemd(t *testing.T) {
	systemtest.Mark(t)
	systemtest.Programs(t, "systemd-analyze")
	program := filepath.Join(t.TempDir(), "soft vpi") // a path that has to be quoted
	if err := os.Symlink(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	features, err := filepath.Glob("../../examples/systemd/system/*.conf")
	if err != nil || len(features) == 0 {
		t.Fatalf("what features add to the service: %v, %v", features, err)
	}
	for _, x := range []struct{ manager, service, socket, feature string }{
		{"--user", setup.Unit(program), setup.Sockets, ""},
		{"--system", setup.SystemUnit(program), setup.SystemSockets, ""},
		{"--system", setup.SystemUnit(program), setup.SystemSockets, features[0]},
		{"--system", setup.SystemUnit(program), setup.SystemSockets, features[len(features)-1]},
	} {
		dir := t.TempDir()
		files := map[string]string{"softvpi.service": x.service, "softvpi.socket": x.socket, "softvpi-function@.socket": setup.SystemFunctionSocket}
		if x.feature != "" {
			b, err := os.ReadFile(x.feature)
			if err != nil {
				t.Fatal(err)
			}
			files["softvpi.service.d/feature.conf"] = string(b)
		}
		for name, text := range files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c := exec.Command("systemd-analyze", x.manager, "--man=no", "verify", filepath.Join(dir, "softvpi.socket"), filepath.Join(dir, "softvpi.service"))
		if x.manager == "--system" {
			c.Args = append(c.Args, filepath.Join(dir, "softvpi-function@.socket"))
		}
		c.Env = append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+dir)
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s %s: %v\n%s", x.manager, x.feature, err, out)
		}
	}
}
