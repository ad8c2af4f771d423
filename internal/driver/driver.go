package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc"
	"github.com/softvpi/softvpi/internal/paths"
)

// Options are what a driver is started with beside its configuration.
type Options struct {
	Version string
	Log     *slog.Logger // nil: nothing
}

// Driver is a running driver: its adapters, and the sockets at which programs
// attach and `softvpi status` asks.
type Driver struct {
	cfg     Config
	version string
	started time.Time
	log     *slog.Logger

	lock     *lock
	host     *device.Host
	admin    *http.Server
	attach   *ipc.Server // nil where programs cannot attach
	noAttach string      // why not
	checks   []Check
	captures captures
	recover  bool // the driver before did not stop cleanly
}

// Start brings a driver up: the lock, the adapters, the check of itself, the
// sockets. When it returns, programs can attach.
func Start(ctx context.Context, cfg Config, o Options) (*Driver, error) {
	cfg, err := cfg.Complete()
	if err != nil {
		return nil, err
	}
	d := &Driver{cfg: cfg, version: o.Version, started: time.Now(), log: o.Log}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if err := d.start(ctx); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Driver) start(ctx context.Context) (err error) {
	if d.lock, err = acquire(d.cfg.State); err != nil {
		return err
	}
	if d.recover = d.lock.stale; d.recover {
		d.log.Warn("the driver before did not stop cleanly; what it left is cleared")
	}
	if err := d.addAdapters(); err != nil {
		return err
	}
	if !d.cfg.SkipSelfCheck {
		if d.checks, err = d.selfCheck(ctx); err != nil {
			return fmt.Errorf("self-check: %w", err)
		}
	}
	if err := d.serveAttach(); err != nil {
		return err
	}
	return d.serveAdmin()
}

func (d *Driver) addAdapters() (err error) {
	if d.host, err = device.NewHost(device.Config{Log: d.log, GIDInterval: d.cfg.gidInterval()}); err != nil {
		return err
	}
	for _, a := range d.cfg.Adapters {
		path, _ := parsePath(a.Path)
		index, err := d.host.AddAdapter(device.AdapterConfig{
			Name: a.Name, Addr: a.Address, FollowInterface: a.FollowInterface, UDPPort: a.UDPPort,
			RoceMaxFrameSize: a.RoceMaxFrameSize, Path: path, ReceiveBuffer: a.ReceiveBuffer, MaxCMRetries: a.MaxCMRetries,
			NoFlowControl: a.RoceRcE2EFlowControlEnable != nil && !*a.RoceRcE2EFlowControlEnable,
		})
		if err != nil {
			return fmt.Errorf("adapter %q at %v: %w", a.Name, netip.AddrPortFrom(a.Address, a.UDPPort), err)
		}
		if err := d.setUp(index, a); err != nil {
			return fmt.Errorf("adapter %q: %w", a.Name, err)
		}
	}
	return nil
}

// Config returns the complete configuration.
func (d *Driver) Config() Config { return d.cfg }

// Checks returns what the self-check found; empty where it was skipped.
func (d *Driver) Checks() []Check { return d.checks }

// Recovered says that the driver before did not stop cleanly.
func (d *Driver) Recovered() bool { return d.recover }

// NoAttach says why programs cannot attach; empty where they can.
func (d *Driver) NoAttach() string { return d.noAttach }

// Close stops the driver: programs are detached, adapters closed, sockets
// removed.
func (d *Driver) Close() error {
	var errs []error
	if d.admin != nil {
		errs = append(errs, d.admin.Close())
	}
	if d.attach != nil {
		errs = append(errs, d.attach.Close())
	}
	if d.host != nil {
		errs = append(errs, d.host.Close())
	}
	if d.attach != nil {
		d.attach.Release()
	}
	if d.lock != nil {
		errs = append(errs, d.lock.release())
	}
	return errors.Join(errs...)
}

func (d *Driver) serveAdmin() error {
	l, err := listen(paths.Management(d.cfg.Socket))
	if err != nil {
		return err
	}
	d.admin = &http.Server{Handler: d.adminHandler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	go func() {
		if err := d.admin.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error("management socket", "error", err)
		}
	}()
	return nil
}

// listen opens a unix socket for this user alone. A socket that a crash left
// behind is removed; one that answers belongs to another driver.
func listen(path string) (*net.UnixListener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("socket directory: %w", err)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("socket %s: something that is no socket is there", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, fmt.Errorf("%w: it listens at %s", ErrRunning, path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("stale socket: %w", err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("socket: %w", err)
	}
	return l, nil
}
