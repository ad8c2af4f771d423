package driver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/os/peer"
)

var _ apiserver.ContainerSource = (*Driver)(nil)

// serveContainers opens the sockets for containers, each in a directory of its own, which is mounted there. In a container
// programs may have any user, so that the directory and the socket are for everyone: outside, the directory above them
// keeps others away.
func (d *Driver) serveContainers() error {
	c := d.cfg.Containers
	if c == nil {
		return nil
	}
	for i := range c.Count {
		path := paths.Container(d.cfg.Socket, i)
		l, err := listenForContainer(path)
		if err != nil {
			return err
		}
		own := c.Quota(i)
		q := budget.NewQuota(fmt.Sprintf("container %d", i), uint64(own.Memory), uint64(own.Descriptors))
		d.containers = append(d.containers, q)
		go func() {
			if err := d.attach.ServeContainer(context.Background(), l, server.Container{Audience: peer.Everyone, Quota: q}); err != nil {
				d.log.Error("attach socket", "path", path, "error", err)
			}
		}()
	}
	return nil
}

// heldBy returns what the programs of containers make the driver hold.
func (d *Driver) heldBy() (list []api.ContainerStatus) {
	l := d.attach.Ledger()
	for i, q := range d.containers {
		c := api.ContainerStatus{Number: i, Socket: paths.Container(d.cfg.Socket, i)}
		memory, most := l.UsageOf(q, budget.Memory)
		c.Memory, c.MemoryLimit, c.Refused = memory.Used, most, memory.Refused
		descriptors, most := l.UsageOf(q, budget.Descriptors)
		c.Descriptors, c.DescriptorsLimit = descriptors.Used, most
		c.Refused += descriptors.Refused
		list = append(list, c)
	}
	return list
}

// listenForContainer opens a socket that a container gets.
func listenForContainer(path string) (*net.UnixListener, error) {
	l, err := listen(path, peer.Everyone.Mode())
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(filepath.Dir(filepath.Dir(path)), 0o700), os.Chmod(filepath.Dir(path), 0o711)); err != nil {
		l.Close()
		return nil, fmt.Errorf("directory of a container's socket: %w", err)
	}
	return l, nil
}

// serveFunctionContainer opens the socket by which a container has a virtual function, if the configuration has sockets for containers:
// for whichever user the container has, behind the directory that keeps others away.
func (d *Driver) serveFunctionContainer(f *virtualFunction) (*net.UnixListener, error) {
	if d.cfg.Containers == nil {
		return nil, nil
	}
	path := paths.FunctionContainer(d.cfg.Socket, f.cfg.Name)
	if len(path) >= paths.MaxSocket {
		return nil, fmt.Errorf("socket %s: its path has %d bytes, at most %d are possible; choose a shorter --socket", path, len(path),
			paths.MaxSocket-1)
	}
	return listenForContainer(path)
}

// serveTenant lets programs attach to a virtual function at each of those sockets that is not nil, until f.close.
func (d *Driver) serveTenant(f *virtualFunction, sockets ...*net.UnixListener) {
	ctx, cancel := context.WithCancel(context.Background())
	sockets = slices.DeleteFunc(sockets, func(l *net.UnixListener) bool { return l == nil })
	f.close = func() { // at once: another function of that name may follow
		cancel()
		for _, l := range sockets {
			l.Close()
		}
	}
	set := server.Container{Of: func(c *net.UnixConn) server.Container { return d.tenant(f, c, peer.Everyone) }}
	for _, l := range sockets {
		go func() {
			if err := d.attach.ServeContainer(ctx, l, set); err != nil {
				d.log.Error("attach socket", "path", l.Addr(), "error", err)
			}
		}()
	}
}

// dropFunctionContainer removes the directory of such a socket. Where it is mounted it stays, empty.
func (d *Driver) dropFunctionContainer(f *virtualFunction) {
	if d.cfg.Containers != nil {
		_ = os.Remove(filepath.Dir(paths.FunctionContainer(d.cfg.Socket, f.cfg.Name)))
	}
}

// SetContainer changes what the programs of a container may make the driver hold. What they hold already stays.
func (d *Driver) SetContainer(q api.ContainerRequest) error {
	d.changes.Lock()
	defer d.changes.Unlock()
	c := d.cfg.Containers
	if c == nil || q.Number < 0 || q.Number >= len(d.containers) {
		return api.Wrong("number", strconv.Itoa(q.Number), allowedContainers(len(d.containers)))
	}
	next := c.Quota(q.Number)
	if q.Memory != nil && *q.Memory != 0 {
		next.Memory = config.Size(*q.Memory)
	}
	if q.Descriptors != nil && *q.Descriptors != 0 {
		next.Descriptors = *q.Descriptors
	}
	if err := next.Check(""); err != nil {
		return err
	}
	l, of := d.attach.Ledger(), d.containers[q.Number]
	if q.Memory != nil {
		l.Limit(of, budget.Memory, uint64(next.Memory))
	}
	if q.Descriptors != nil {
		l.Limit(of, budget.Descriptors, uint64(next.Descriptors))
	}
	return nil
}

func allowedContainers(n int) string {
	if n == 0 {
		return "none, since the driver was not started with sockets for containers (softvpi up --containers)"
	}
	return fmt.Sprintf("0 to %d", n-1)
}
