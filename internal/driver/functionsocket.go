package driver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/os/peer"
)

// serveFunction opens the socket of a virtual function, if programs can attach: its programs see it alone. The socket is for the
// driver's user, and for the members of the function's group.
func (d *Driver) serveFunction(f *virtualFunction) error {
	if d.attach == nil {
		return nil
	}
	path := paths.Function(d.cfg.Socket, f.cfg.Name)
	if len(path) >= paths.MaxSocket {
		return fmt.Errorf("socket %s: its path has %d bytes, at most %d are possible; choose a shorter --socket", path, len(path),
			paths.MaxSocket-1)
	}
	l, err := d.listenFunction(path, f.group)
	if err != nil {
		return fmt.Errorf("socket of the virtual function %q: %w", f.cfg.Name, err)
	}
	within, err := d.serveFunctionContainer(f)
	if err != nil {
		l.Close()
		return err
	}
	d.serveTenant(f, l, within)
	return nil
}

// listenFunction opens the socket of a virtual function for a group, unless a service manager has, which says who may connect to it.
func (d *Driver) listenFunction(path, group string) (*net.UnixListener, error) {
	if p := d.passedFor(path); p != nil {
		if group != "" {
			d.log.Warn("the socket of a virtual function is open to whom its unit says, not to its group", "function", p.name, "group", group)
		}
		return p.take()
	}
	l, err := listen(path, peer.Owner.Mode())
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(paths.Functions(d.cfg.Socket), 0o711), admit(path, group)); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// admit lets the members of a group, by name or number, connect to a socket; empty: nobody but its owner. The system checks that.
func admit(path, group string) error {
	if group == "" {
		return os.Chmod(path, 0o600)
	}
	gid, err := groupID(group)
	if err != nil {
		return err
	}
	return errors.Join(os.Chown(path, -1, gid), os.Chmod(path, 0o660))
}

// groupID returns the number of a group.
func groupID(group string) (int, error) {
	if g, err := user.LookupGroup(group); err == nil {
		return strconv.Atoi(g.Gid)
	}
	if n, err := strconv.ParseUint(group, 10, 31); err == nil {
		return int(n), nil
	}
	return 0, api.Wrong("group", strconv.Quote(group), "a group of the system, by name or number; none")
}

// passedFunction is the socket of a virtual function that a service manager has opened. It stays whether there is such a function or not,
// and who may connect to it is what the manager has decided.
type passedFunction struct {
	name, path string
	socket     *net.UnixListener
	refuse     context.CancelFunc // ends telling programs that the function is not there; nil: nobody is told
}

// passedFor returns the socket that a service manager has opened at the path of a virtual function's; nil: none.
func (d *Driver) passedFor(path string) *passedFunction {
	i := slices.IndexFunc(d.passedFunctions, func(p *passedFunction) bool { return p.path == path })
	if i < 0 {
		return nil
	}
	return d.passedFunctions[i]
}

// mayAdmit returns why a virtual function of that name has no group of its own: a service manager has opened its socket.
func (d *Driver) mayAdmit(name, group string) error {
	if group == "" || d.passedFor(paths.Function(d.cfg.Socket, name)) == nil {
		return nil
	}
	return api.Wrong("group", strconv.Quote(group), "none: a service manager has opened the socket, whose unit says who may connect (SocketGroup=)")
}

// listener returns another descriptor of the socket, which stays when that is closed.
func (p *passedFunction) listener() (*net.UnixListener, error) {
	f, err := p.socket.File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("it listens at %v; allowed: a unix socket", l.Addr())
	}
	return u, nil
}

// take returns a listener for the function, which is there now.
func (p *passedFunction) take() (*net.UnixListener, error) {
	if p.refuse != nil {
		p.refuse()
		p.refuse = nil
	}
	return p.listener()
}

// refusePassed has programs told at the passed sockets of virtual functions that are not there: nobody would answer them otherwise, and
// they would wait. The caller holds changes.
func (d *Driver) refusePassed() {
	for _, p := range d.passedFunctions {
		d.functions.mu.Lock()
		there := slices.ContainsFunc(d.functions.list, func(f *virtualFunction) bool { return f.cfg.Name == p.name && f.close != nil })
		d.functions.mu.Unlock()
		if there || p.refuse != nil || d.attach == nil {
			continue
		}
		l, err := p.listener()
		if err != nil {
			d.log.Error("attach socket", "path", p.path, "error", err)
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		p.refuse = func() {
			cancel()
			l.Close() // at once: it accepts nobody else
		}
		set := server.Container{Audience: peer.Everyone, Quota: new(budget.Quota), Function: func() (uint32, error) {
			return 0, command.Errorf(command.Removed, "there is no virtual function %q", p.name)
		}}
		go func() {
			if err := d.attach.ServeContainer(ctx, l, set); err != nil {
				d.log.Error("attach socket", "path", p.path, "error", err)
			}
		}()
	}
}
