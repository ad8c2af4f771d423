package driver

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/lock"
	"github.com/softvpi/softvpi/internal/os/paths"
)

// takeSockets takes over the sockets that a service manager has opened.
func (d *Driver) takeSockets(list []*net.UnixListener) error {
	ours := []string{d.cfg.Socket, paths.Management(d.cfg.Socket)}
	for i, l := range list {
		at := l.Addr().String()
		twice := slices.ContainsFunc(list[:i], func(o *net.UnixListener) bool { return o.Addr().String() == at })
		name, ofFunction := paths.FunctionAt(d.cfg.Socket, at)
		switch {
		case !twice && ofFunction && functionName(name) == nil:
			d.passedFunctions = append(d.passedFunctions, &passedFunction{name: name, path: at, socket: l})
		case !twice && slices.Contains(ours, at):
			d.sockets = append(d.sockets, l)
		default:
			return &config.Error{Path: "passed socket " + strconv.Itoa(i), Err: fmt.Errorf("%q; allowed: %s, %s and %s, each once", at, ours[0],
				ours[1], paths.Function(d.cfg.Socket, "NAME"))}
		}
	}
	return nil
}

// passed returns the socket that a service manager has opened at a path; nil: none.
func (d *Driver) passed(path string) *net.UnixListener {
	i := slices.IndexFunc(d.sockets, func(l *net.UnixListener) bool { return l.Addr().String() == path })
	if i < 0 {
		return nil
	}
	l := d.sockets[i]
	d.sockets = slices.Delete(d.sockets, i, i+1)
	return l
}

// listen returns the socket that a service manager has opened at a path, with that mode, or opens one.
func (d *Driver) listen(path string, mode fs.FileMode) (*net.UnixListener, error) {
	l := d.passed(path)
	if l == nil {
		return listen(path, mode)
	}
	if err := os.Chmod(path, mode); err != nil {
		l.Close()
		return nil, fmt.Errorf("socket: %w", err)
	}
	return l, nil
}

// listen opens a unix socket with that mode. A socket left behind by a crash is removed; one that answers
// belongs to another driver.
func listen(path string, mode fs.FileMode) (*net.UnixListener, error) {
	if err := paths.Room(path); err != nil {
		return nil, fmt.Errorf("socket directory: %w", err)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("socket %s: this path exists and is not a socket", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, fmt.Errorf("%w: it listens at %s", lock.ErrRunning, path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("stale socket: %w", err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		l.Close()
		return nil, fmt.Errorf("socket: %w", err)
	}
	return l, nil
}
