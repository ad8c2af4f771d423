package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/reach"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/ipc/stream"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/os/peer"
	"github.com/softvpi/softvpi/internal/ring"
)

// Dial attaches to the driver that listens on socket. If there is no driver, the error wraps that of the
// connection (fs.ErrNotExist, ECONNREFUSED); if the driver refuses the program, it is a *command.Error.
func Dial(ctx context.Context, socket string, o Options) (*Client, error) {
	path, err := o.forcedPath()
	if err != nil {
		return nil, err
	}
	if err := paths.Own(socket); err != nil {
		return nil, fmt.Errorf("attach to %s: %w", socket, err)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("attach to %s: %w", socket, err)
	}
	c := &Client{conn: conn.(*net.UnixConn), segments: map[uint32][]byte{}, policy: newPolicy()}
	c.out = stream.NewWriter(c.conn, 0)
	c.out.Patience = Patience
	c.in = stream.NewReader(c.conn)
	c.arenas.Store(&[][]byte{})
	c.words.list = map[command.Handle]*uint32{}
	if err := c.attach(ctx, o, path); err != nil {
		c.abandon()
		if e := (*command.Error)(nil); errors.As(err, &e) {
			return nil, e
		}
		return nil, fmt.Errorf("attach to %s: %w", socket, err)
	}
	c.workers.Add(1)
	go c.read()
	if c.copier != nil {
		serve := o.Copier
		if serve == nil {
			serve = reach.Serve
		}
		c.workers.Add(1)
		go func() {
			defer c.workers.Done()
			serve(c.copier, &c.stop, func() { c.Doorbell(0) })
		}()
	}
	return c, nil
}

// attach exchanges hello and receives the first arena.
func (c *Client) attach(ctx context.Context, o Options, path command.MemoryPath) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(10 * time.Second)
	}
	_ = c.conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.hello(o, path); err != nil {
		if ctx.Err() != nil {
			return command.Ended(ctx)
		}
		return err
	}
	if !stop() {
		return command.Ended(ctx)
	}
	return c.conn.SetDeadline(time.Time{})
}

func (c *Client) hello(o Options, path command.MemoryPath) error {
	driver, err := peer.Of(c.conn)
	if err != nil {
		return err
	}
	probe, err := reach.NewProbe()
	if err != nil {
		return fmt.Errorf("probe page: %w", err)
	}
	c.probe = probe // for as long as the program is attached: neighbours look at it, too
	_, _ = rand.Read(probe[:16])
	if driver.PID > 0 {
		// If Yama restricts process_vm to descendants this admits
		// the driver; without Yama it fails, and is not needed.
		_ = unix.Prctl(unix.PR_SET_PTRACER, uintptr(driver.PID), 0, 0, 0)
	}
	if o.Name == "" {
		o.Name = filepath.Base(os.Args[0])
	}
	features := proto.FeatureSegments | proto.FeatureProcessVM | proto.FeatureCopier | proto.FeatureTracks
	if o.takesPart() {
		features |= proto.FeatureDirect | proto.FeatureProcess
	}
	q := proto.Hello{
		Magic: proto.Magic, Major: proto.Major, Minor: proto.Minor, Features: features,
		Name: proto.FixedName(o.Name), ProbeAddr: uint64(uintptr(unsafe.Pointer(&probe[0]))), Nonce: [16]byte(probe[:16]), Path: path,
	}
	if err := c.out.Send(proto.OpHello, 0, 1, proto.Encode(q)); err != nil {
		return err
	}
	if err := c.welcomed(); err != nil {
		return err
	}
	return c.firstArena()
}

// welcomed handles the driver's answer to hello.
func (c *Client) welcomed() error {
	var buf []byte
	h, body, err := proto.ReadFrame(c.in, &buf, proto.MaxFrame)
	if err != nil {
		return err
	}
	fds, err := c.in.Take(h.FDs())
	if err != nil {
		return err
	}
	defer stream.CloseAll(fds)
	switch {
	case h.Op != proto.OpHello || h.Flags&proto.FlagResponse == 0:
		return fmt.Errorf("%w: operation %d for hello", proto.ErrFrame, h.Op)
	case h.Flags&proto.FlagError != 0:
		return proto.DecodeError(body)
	}
	if c.about, err = proto.Decode[proto.Welcome](body); err != nil {
		return err
	}
	w := &c.about
	if w.Magic != proto.Magic || w.Major != proto.Major {
		return command.Errorf(
			command.Unsupported,
			"the driver speaks version %d.%d, this program %d.%d",
			w.Major,
			w.Minor,
			proto.Major,
			proto.Minor,
		)
	}
	if w.Credits == 0 || w.Credits > 1<<16 || w.MaxRequests == 0 || w.MaxRequests > 1<<16 {
		return fmt.Errorf("%w: %d credits, %d requests", proto.ErrFrame, w.Credits, w.MaxRequests)
	}
	if want := map[bool]int{true: 2, false: 1}[w.CopierBytes > 0]; len(fds) != want {
		return fmt.Errorf("%w: %d descriptors, want %d", proto.ErrFrame, len(fds), want)
	}
	c.calls, c.events = newCalls(int(w.MaxRequests)), newEventQueue(int(w.Credits))
	c.calls.overdue.ask = c.askAlive
	if w.CopierBytes > 0 {
		if w.CopierBytes < reach.CopierSize {
			return fmt.Errorf("%w: copier memory of %d bytes, want %d", proto.ErrFrame, w.CopierBytes, reach.CopierSize)
		}
		if c.copier, err = shared.Map(fds[1], w.CopierBytes); err != nil {
			return err
		}
	}
	return c.openWake(fds)
}

// openWake takes over the wake descriptor, the first of fds.
func (c *Client) openWake(fds []int) error {
	_ = unix.SetNonblock(fds[0], true)
	fd := fds[0]
	fds[0] = -1
	c.wake = os.NewFile(uintptr(fd), "softvpi-wake")
	raw, err := c.wake.SyscallConn()
	if err != nil {
		return err
	}
	c.wakeConn = raw
	c.ring = func(fd uintptr) { stream.WriteWake(int(fd)) }
	return nil
}

// expect reads the next frame while a program attaches, which must be op or the driver's goodbye.
func (c *Client) expect(op proto.Opcode, what string) (proto.Header, []byte, error) {
	var buf []byte
	h, body, err := proto.ReadFrame(c.in, &buf, proto.MaxFrame)
	switch {
	case err != nil:
		return h, nil, err
	case h.Op == proto.OpGoodbye:
		return h, nil, farewell(body)
	case h.Op != op:
		return h, nil, fmt.Errorf("%w: operation %d before %s", proto.ErrFrame, h.Op, what)
	}
	return h, body, nil
}

// firstArena receives arena 0 and opens the doorbell queue in it.
func (c *Client) firstArena() error {
	h, body, err := c.expect(proto.OpArena, "arena 0")
	if err != nil {
		return err
	}
	if err := c.arena(h, body); err != nil {
		return err
	}
	if c.doorbells, err = ring.OpenDoorbells(c.Arena(0), ring.DoorbellGeometry(int(c.about.Doorbells))); err != nil {
		return err
	}
	if c.news, err = ring.OpenNews(c.Arena(0)); err != nil || c.about.Features&proto.FeatureTracks == 0 {
		return err
	}
	return c.takeTracks()
}

// abandon releases the resources of a failed Dial.
func (c *Client) abandon() {
	c.conn.Close()
	c.in.Close()
	if c.wake != nil {
		c.wake.Close()
	}
	for _, mem := range *c.arenas.Load() {
		_ = unix.Munmap(mem)
	}
	if c.tracks.mem != nil {
		_ = unix.Munmap(c.tracks.mem)
	}
	if c.copier != nil {
		_ = unix.Munmap(c.copier)
	}
	if c.probe != nil {
		_ = unix.Munmap(c.probe)
	}
}
