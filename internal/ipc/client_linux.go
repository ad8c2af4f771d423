package ipc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// Client is a program's side of an attachment. Its methods are safe for
// concurrent use.
type Client struct {
	conn   *net.UnixConn
	in     *fdReader
	out    *writer
	about  welcome
	calls  *calls
	events *eventQueue
	words  words

	introduced introduced
	crowd      crowd
	tracks     tracks

	arenas    atomic.Pointer[[][]byte]
	doorbells *ring.Doorbells
	news      ring.News
	wake      *os.File
	wakeConn  interface{ Control(func(uintptr)) error }
	ring      func(uintptr)

	mu       sync.Mutex
	segments map[uint32][]byte
	closed   bool

	stop    atomic.Bool // the stream ended: waiters give up
	copier  []byte
	workers sync.WaitGroup
}

// Dial attaches to the driver that listens on socket. The error wraps that of
// the connection (fs.ErrNotExist, ECONNREFUSED) where no driver is there, or is a
// *command.Error where the driver refuses the program.
func Dial(ctx context.Context, socket string, o Options) (*Client, error) {
	path, err := o.forcedPath()
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("attach to %s: %w", socket, err)
	}
	c := &Client{conn: conn.(*net.UnixConn), segments: map[uint32][]byte{}}
	c.out = newWriter(c.conn, 0)
	c.in = &fdReader{from: taker{conn: c.conn}}
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
		c.workers.Add(1)
		go func() {
			defer c.workers.Done()
			newCopierMem(c.copier).serveCopies(&c.stop, func() { c.Doorbell(0) })
		}()
	}
	return c, nil
}

// attach exchanges hello and takes the first arena.
func (c *Client) attach(ctx context.Context, o Options, path uint32) error {
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

func (c *Client) hello(o Options, path uint32) error {
	driver, err := peerOf(c.conn)
	if err != nil {
		return err
	}
	probe, err := newProbe()
	if err != nil {
		return fmt.Errorf("probe page: %w", err)
	}
	defer unix.Munmap(probe)
	_, _ = rand.Read(probe[:16])
	if driver.PID > 0 {
		// Where Yama restricts process_vm to descendants this lets the driver in;
		// without Yama it fails, and is not needed.
		_ = unix.Prctl(unix.PR_SET_PTRACER, uintptr(driver.PID), 0, 0, 0)
	}
	if o.Name == "" {
		o.Name = filepath.Base(os.Args[0])
	}
	features := featureSegments | featureProcessVM | featureCopier | featureTracks
	if o.takesPart() {
		features |= featureDirect
	}
	q := hello{
		Magic: Magic, Major: Major, Minor: Minor, Features: features,
		Name: fixedName(o.Name), ProbeAddr: uint64(uintptr(unsafe.Pointer(&probe[0]))), Nonce: [16]byte(probe[:16]), Path: path,
	}
	if err := c.out.send(opHello, 0, 1, encode(q)); err != nil {
		return err
	}
	if err := c.welcomed(); err != nil {
		return err
	}
	return c.firstArena()
}

// welcomed takes the driver's answer to hello.
func (c *Client) welcomed() error {
	var buf []byte
	h, body, err := readFrame(c.in, &buf, maxFrame)
	if err != nil {
		return err
	}
	fds, err := c.in.take(h.fds())
	if err != nil {
		return err
	}
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	switch {
	case h.Op != opHello || h.Flags&flagResponse == 0:
		return fmt.Errorf("%w: operation %d for hello", errFrame, h.Op)
	case h.Flags&flagError != 0:
		return decodeError(body)
	}
	if c.about, err = decode[welcome](body); err != nil {
		return err
	}
	w := &c.about
	if w.Magic != Magic || w.Major != Major {
		return command.Errorf(command.Unsupported, "the driver speaks version %d.%d, this program %d.%d", w.Major, w.Minor, Major, Minor)
	}
	if w.Credits == 0 || w.Credits > 1<<16 || w.MaxRequests == 0 || w.MaxRequests > 1<<16 {
		return fmt.Errorf("%w: %d credits, %d requests", errFrame, w.Credits, w.MaxRequests)
	}
	if want := map[bool]int{true: 2, false: 1}[w.CopierBytes > 0]; len(fds) != want {
		return fmt.Errorf("%w: %d descriptors, want %d", errFrame, len(fds), want)
	}
	c.calls, c.events = newCalls(int(w.MaxRequests)), newEventQueue(int(w.Credits))
	if w.CopierBytes > 0 {
		if w.CopierBytes < copierSize {
			return fmt.Errorf("%w: copier memory of %d bytes, want %d", errFrame, w.CopierBytes, copierSize)
		}
		if c.copier, err = mapShared(fds[1], w.CopierBytes); err != nil {
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
	c.ring = func(fd uintptr) { writeWake(int(fd)) }
	return nil
}

// firstArena takes arena 0 and opens the doorbell queue in it.
func (c *Client) firstArena() error {
	var buf []byte
	h, body, err := readFrame(c.in, &buf, maxFrame)
	if err != nil {
		return err
	}
	if h.Op == opGoodbye {
		return farewell(body)
	}
	if h.Op != opArena {
		return fmt.Errorf("%w: operation %d before arena 0", errFrame, h.Op)
	}
	if err := c.arena(h, body); err != nil {
		return err
	}
	if c.doorbells, err = ring.OpenDoorbells(c.Arena(0), ring.DoorbellGeometry(int(c.about.Doorbells))); err != nil {
		return err
	}
	if c.news, err = ring.OpenNews(c.Arena(0)); err != nil || c.about.Features&featureTracks == 0 {
		return err
	}
	return c.takeTracks()
}

// arena takes an arena that the driver passed.
func (c *Client) arena(h header, body []byte) error {
	b, err := decode[arenaBody](body)
	if err != nil {
		return err
	}
	fds, err := c.in.take(h.fds())
	if err != nil {
		return err
	}
	for _, fd := range fds {
		defer unix.Close(fd)
	}
	old := *c.arenas.Load()
	if len(fds) != 1 || int(b.ID) != len(old) {
		return fmt.Errorf("%w: arena %d with %d descriptors after %d arenas", errFrame, b.ID, len(fds), len(old))
	}
	mem, err := mapShared(fds[0], b.Size)
	if err != nil {
		return err
	}
	list := append(slices.Clone(old), mem)
	c.arenas.Store(&list)
	return nil
}

// read handles the driver's frames until the stream ends.
func (c *Client) read() {
	defer c.workers.Done()
	var buf []byte
	for {
		h, body, err := readFrame(c.in, &buf, maxFrame)
		if err == nil && h.Op != opNudge {
			err = c.frame(h, body)
			c.tracks.taken.Add(1)
		}
		if err == nil {
			err = c.nudged()
		}
		if err != nil {
			c.fail(removed(err))
			return
		}
	}
}

func (c *Client) frame(h header, body []byte) error {
	switch {
	case h.Op == opEvents:
		return c.pushed(body)
	case h.Op == opArena:
		return c.arena(h, body)
	case h.Op == opShare, h.Op == opIntroduce, h.Op == opDrop:
		defer c.news.Take()
		return c.neighbours(h, body)
	case h.Op == opGoodbye:
		return farewell(body)
	}
	r := reply{body: slices.Clone(body)}
	var err error
	if r.fds, err = c.in.take(h.fds()); err != nil {
		return err
	}
	if h.Flags&flagError != 0 {
		r.err = decodeError(r.body)
	}
	if h.Flags&flagResponse != 0 {
		if a, ok := c.calls.take(h.ID); ok {
			a.tell(r)
			return nil
		}
	}
	for _, fd := range r.fds { // nobody waits any more, or a later minor version's push
		unix.Close(fd)
	}
	return nil
}

// pushed takes events. Nothing here waits for the driver: it may wait for this program to
// take frames.
func (c *Client) pushed(body []byte) error {
	list, err := decodeList[command.Event](body)
	if err != nil {
		return err
	}
	free, err := c.events.push(list)
	if free > 0 {
		grant := encode(credit{uint32(free)})
		if !c.out.offer(opCredit, grant) {
			go func() { _ = c.send(opCredit, 0, grant) }()
		}
	}
	return err
}

// neighbours takes what the driver says of other programs.
func (c *Client) neighbours(h header, body []byte) error {
	switch h.Op {
	case opShare:
		return c.shared(h, body)
	case opIntroduce:
		return c.introduce(body)
	default:
		return c.drop(body)
	}
}

// farewell is the error by which the driver ends the stream.
func farewell(body []byte) error {
	g, err := decode[goodbye](body)
	if err != nil {
		return err
	}
	n := min(int(g.Length), len(g.Reason))
	return command.Errorf(command.Removed, "the driver disconnected this program: %s", g.Reason[:n])
}

// fail ends everything that waits.
func (c *Client) fail(err error) {
	c.calls.fail(err)
	c.events.fail(err)
	c.stop.Store(true)
	c.out.hurry()
	c.words.wakeAll()
}

func (c *Client) send(op opcode, id uint64, body []byte) error {
	return c.out.along(op, id, body)
}

// Doorbell says that work was posted on a QP or SRQ.
func (c *Client) Doorbell(h command.Handle) {
	if c.doorbells.Ring(uint32(h)) {
		c.wakeDriver()
	}
}

// wakeDriver wakes the loop if it wants to be woken.
func (c *Client) wakeDriver() { _ = c.wakeConn.Control(c.ring) }

// Poll offers the processor to others now and then, the driver above all: a program
// that polls completion queues calls it after each look in vain, idle in a row. It
// reports whether it did: then it is worth looking again.
func (c *Client) Poll(idle uint32) bool { return c.crowd.poll(idle) }

// Spins is how many looks at an empty CQ, each with a Poll, take some 50 us.
func (c *Client) Spins() int { return 512 }

// Arena returns the memory of ring arena id; nil where there is none.
func (c *Client) Arena(id uint32) []byte {
	list := *c.arenas.Load()
	if uint64(id) >= uint64(len(list)) {
		return nil
	}
	return list[id]
}

// MemoryPath is how the driver reaches memory outside of segments.
func (c *Client) MemoryPath() uint32 { return c.about.Path }

// Driver returns the driver's name with its version, and its process id.
func (c *Client) Driver() (string, int) { return nameOf(c.about.Driver), int(c.about.PID) }

// AllocSegment makes size bytes of memory that the driver maps too, and returns
// its number for command.RegisterMemory. The driver bounds how much there may be.
func (c *Client) AllocSegment(ctx context.Context, size uint64) (uint32, []byte, error) {
	r, err := c.call(ctx, opAllocSegment, encode(segmentArgs{size}))
	for _, fd := range r.fds {
		defer unix.Close(fd)
	}
	if err != nil {
		return 0, nil, err
	}
	s, err := decode[segmentReply](r.body)
	if err != nil || len(r.fds) != 1 || s.Size < size {
		return 0, nil, command.Errorf(command.Internal, "the driver's answer: %d descriptors, %d bytes", len(r.fds), s.Size)
	}
	mem, err := mapShared(r.fds[0], size)
	if err != nil {
		_ = tell(context.WithoutCancel(ctx), c, opFreeSegment, handleArgs{command.Handle(s.Number)})
		return 0, nil, command.Errorf(command.Exhausted, "segment of %d bytes: %v", size, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = unix.Munmap(mem)
		return 0, nil, errClosed
	}
	c.segments[s.Number] = mem
	return s.Number, mem, nil
}

// FreeSegment unmaps a segment here at once, and in the driver when no region
// lies in it any more.
func (c *Client) FreeSegment(id uint32) error {
	c.mu.Lock()
	mem := c.segments[id]
	delete(c.segments, id)
	c.mu.Unlock()
	if mem == nil {
		return command.Errorf(command.NotFound, "segment %d", id)
	}
	err := unix.Munmap(mem)
	if e := c.freeSegment(id); e != nil {
		return e
	}
	if err != nil {
		return command.Errorf(command.Internal, "munmap: %v", err)
	}
	return nil
}

func (c *Client) freeSegment(id uint32) error {
	_, err := c.call(context.Background(), opFreeSegment, encode(handleArgs{command.Handle(id)}))
	return err
}

var errClosed = command.Errorf(command.Canceled, "the attachment is closed")

// Close detaches: the driver tears the program's objects down. Rings and segments
// read as zeros from then on.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.introduced.stop()
	c.fail(errClosed)
	c.out.hurry()
	_ = c.out.stream(opGoodbye, 0, 0, nil) // without it the driver takes the end for a death
	err := c.conn.Close()
	c.workers.Wait()
	c.wake.Close()
	c.in.close()
	for _, mem := range *c.arenas.Load() {
		retire(mem)
	}
	if c.tracks.mem != nil {
		retire(c.tracks.mem)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, mem := range c.segments {
		retire(mem)
	}
	c.segments = nil
	c.introduced.close()
	if c.copier != nil {
		_ = unix.Munmap(c.copier)
	}
	return err
}

// abandon releases what a failed Dial had.
func (c *Client) abandon() {
	c.conn.Close()
	c.in.close()
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
}
