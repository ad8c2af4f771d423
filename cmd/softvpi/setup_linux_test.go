package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/os/paths"
)

// setupPlace gives a test a prefix, a state directory and a configuration directory of its own.
func setupPlace(t *testing.T) (prefix string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv(paths.StateVariable, filepath.Join(dir, "state"))
	t.Setenv(paths.SocketVariable, filepath.Join(dir, "none.sock"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	return filepath.Join(dir, "prefix")
}

// TestSetup: what is installed is there, says so, is upgraded with what the properties ask for, and goes without a rest.
func TestSetup(t *testing.T) {
	prefix := setupPlace(t)
	step := func(status int, want string, args ...string) {
		t.Helper()
		got, stdout, stderr := call(t, "softvpi", append([]string{"setup"}, args...)...)
		if got != status || !strings.Contains(stdout+stderr, want) {
			t.Errorf("%q: status %d, %q, %q; want %d and %q", args, got, stdout, stderr, status, want)
		}
	}
	module := filepath.Join(prefix, "share/powershell/Modules/SoftVPI/SoftVPI.psd1")
	step(1, "nothing is installed", "status", "--prefix", prefix)
	step(0, "installed development in "+prefix, "--prefix", prefix)
	for _, f := range []string{"bin/softvpi", "bin/vstat", "lib/softvpi/tools/ibstat", "share/man/man1/nd_rping.1", "share/systemd/user/softvpi.service"} {
		if _, err := os.Stat(filepath.Join(prefix, f)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(module); err != nil {
		t.Error(err)
	}
	step(0, "as they were installed", "status", "--prefix", prefix)
	t.Setenv("MT_WMI", "0")
	step(0, "upgraded from development to development", "--prefix", prefix)
	if _, err := os.Stat(module); !os.IsNotExist(err) {
		t.Errorf("MT_WMI=0 leaves %s: %v", module, err)
	}
	if err := os.WriteFile(filepath.Join(prefix, "bin/vstat"), nil, 0o600); err != nil { // through the link: the program
		t.Fatal(err)
	}
	step(1, "not as it was", "status", "--prefix", prefix)
	step(0, "removed from", "/x", "--prefix", prefix)
	left, err := os.ReadDir(prefix)
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestSetup_Codes: what fails is reported with the manuals' number, their text, and what is left of the number in the exit status; a
// configuration that cannot be read is the manuals' warning 3.
func TestSetup_Codes(t *testing.T) {
	prefix := setupPlace(t)
	if err := os.WriteFile(prefix, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := call(t, "softvpi", "setup", "--prefix", prefix)
	if want := "return code 1603 (exit status 67, its lowest eight bits): Fatal error during installation: "; status != 1603&0xff ||
		!strings.Contains(stderr, want) {
		t.Errorf("status %d, %q", status, stderr)
	}
	if setupStatus("windows", 1633) != 1633 || setupStatus("linux", 1633) != 97 {
		t.Error("1633 is not kept where it can be")
	}
	log, err := os.ReadFile(filepath.Join(paths.State(), "MLNX_WinOF.log0"))
	if err != nil || !strings.Contains(string(log), "return code 1603: Fatal error during installation: ") {
		t.Errorf("%q, %v", log, err)
	}
	if err := os.Remove(prefix); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(paths.Config()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(paths.Config(), []byte(`{"nosuch": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, stderr = call(t, "softvpi", "setup", "--prefix", prefix, "MT_DRIVERS_ONLY=1")
	if status != 0 || !strings.Contains(stderr, "warning 3: Failed to restore the configuration: ") {
		t.Errorf("status %d, %q", status, stderr)
	}
	status, stdout, stderr := call(t, "softvpi", "setup", "--prefix", prefix, "MT_RESTORECONF=0")
	if _, err := os.Stat(paths.Config() + ".before-setup"); err != nil || status != 0 || stderr != "" {
		t.Errorf("status %d, %q, %q, %v", status, stdout, stderr, err)
	}
}

// TestSetup_WrongMachine: libraries for another machine are the manuals' return code 1633, and nothing is installed.
func TestSetup_WrongMachine(t *testing.T) {
	prefix := setupPlace(t)
	exe, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	libraries := t.TempDir()
	exe[18], exe[19] = 8, 0 // e_machine: MIPS
	if err := os.WriteFile(filepath.Join(libraries, "libibverbs.so.1"), exe, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOFTVPI_CLIB", libraries)
	status, _, stderr := call(t, "softvpi", "setup", "--prefix", prefix)
	if status != 97 || !strings.Contains(stderr, "return code 1633 (exit status 97, its lowest eight bits): The installation package is not supported on this platform: ") {
		t.Errorf("status %d, %q", status, stderr)
	}
	if left, err := os.ReadDir(prefix); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
