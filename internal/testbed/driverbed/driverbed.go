// Package driverbed starts drivers for the tests of tools and pages.
package driverbed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// Version is the version that the drivers report.
const Version = "9.9"

// Config returns the configuration of a driver in a directory of the test's own. Adapters without an
// address get one from 127.0.0.0/8 that no other test uses.
func Config(t testing.TB, adapters ...config.Adapter) config.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "vpi") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	addrs := loopback.Addrs(max(1, len(adapters)))
	for i := range adapters {
		if !adapters[i].Address.IsValid() {
			adapters[i].Address, addrs = addrs[0], addrs[1:]
		}
	}
	return config.Config{
		Socket: filepath.Join(dir, "s"), State: filepath.Join(dir, "state"), SkipSelfCheck: true, Adapters: adapters,
	}
}

// Start starts a driver that runs until the test ends, unless it is closed earlier.
func Start(t testing.TB, cfg config.Config) *driver.Driver {
	t.Helper()
	d, err := driver.Start(t.Context(), cfg, driver.Options{Version: Version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
