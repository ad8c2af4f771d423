package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/setup"
)

// systemPrefixes are those below which systemd reads units of the system and descriptions of users (systemd.unit(5), sysusers.d(5)).
var systemPrefixes = []string{"/usr/local", "/usr"}

const (
	systemUnitsDir = "lib/systemd/system"
	// Where the driver of the system has its configuration and its state, as its unit says.
	systemConfig = "/etc/softvpi/driver.json"
	systemState  = "/var/lib/softvpi"
)

// systemUnits are the units of the system's driver, as patterns (systemctl(1)), their files, and what systemctl enable has want them. The
// sockets are first, by which the service would be started again while it stops.
var systemUnits = []struct{ name, file, wantedBy string }{
	{"softvpi-function@*.socket", "softvpi-function@.socket", "sockets.target"},
	{"softvpi.socket", "softvpi.socket", "sockets.target"},
	{"softvpi.service", "softvpi.service", "multi-user.target"},
}

// systemItems returns the units of the system's driver, and what its user is made of.
func systemItems(prefix string) []setup.Item {
	return []setup.Item{
		{Path: systemUnitsDir + "/softvpi.service", Content: []byte(setup.SystemUnit(filepath.Join(prefix, "bin", "softvpi"))), Mode: 0o644},
		{Path: systemUnitsDir + "/softvpi.socket", Content: []byte(setup.SystemSockets), Mode: 0o644},
		{Path: systemUnitsDir + "/softvpi-function@.socket", Content: []byte(setup.SystemFunctionSocket), Mode: 0o644},
		{Path: "lib/sysusers.d/softvpi.conf", Content: []byte(setup.SystemUsers), Mode: 0o644},
	}
}

// serviceManager is the systemd of a system, as setup deals with it.
type serviceManager struct {
	root string                                       // of the system
	ctl  func(args ...string) (out string, err error) // systemctl
}

// managerFor returns the system's manager for an installation of root's that it reads; nil: it has nothing to do with this one.
func managerFor(ctx context.Context, prefix string) *serviceManager {
	if os.Geteuid() != 0 || !slices.Contains(systemPrefixes, prefix) {
		return nil
	}
	return &serviceManager{root: "/", ctl: func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
		}
		return string(out), err
	}}
}

// runs reports whether the system was booted with it (sd_booted(3)).
func (m *serviceManager) runs() bool {
	info, err := os.Lstat(filepath.Join(m.root, "run/systemd/system"))
	return err == nil && info.IsDir()
}

// links returns those that systemctl enable has made for the units below a prefix.
func (m *serviceManager) links(prefix string) (list []string) {
	if m == nil {
		return nil
	}
	for _, u := range systemUnits {
		found, _ := filepath.Glob(filepath.Join(m.root, "etc/systemd/system", u.wantedBy+".wants", u.name))
		for _, link := range found {
			if to, err := os.Readlink(link); err == nil && to == filepath.Join(prefix, systemUnitsDir, u.file) {
				list = append(list, link)
			}
		}
	}
	return list
}

// drives reports whether the driver of the system runs.
func (m *serviceManager) drives() bool {
	if m == nil || !m.runs() {
		return false
	}
	_, err := m.ctl("is-active", "--quiet", "softvpi.service")
	return err == nil
}

// settle has the manager stop the units below a prefix that are not there any more, and read those that are. Where nothing of that is to
// be done it changes nothing, so it may be repeated after one that was ended.
func (m *serviceManager) settle(prefix string) error {
	if m == nil || !m.runs() {
		return nil
	}
	stop := []string{"stop"}
	for _, u := range systemUnits {
		file := filepath.Join(prefix, systemUnitsDir, u.file)
		if _, err := os.Lstat(filepath.Join(m.root, file)); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		at, err := m.ctl("show", "--value", "--property=FragmentPath", u.name)
		if err != nil {
			return err
		}
		if slices.Contains(strings.Fields(at), file) { // and not that of a package
			stop = append(stop, u.name)
		}
	}
	if len(stop) > 1 {
		if _, err := m.ctl(stop...); err != nil {
			return err
		}
	}
	_, err := m.ctl("daemon-reload")
	return err
}
