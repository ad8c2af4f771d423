package client

import (
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/ipc/stream"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/wait"
)

// Client is the program's side of an attachment. Its methods are safe for concurrent use.
type Client struct {
	conn   *net.UnixConn
	in     *stream.Reader
	out    *stream.Writer
	about  proto.Welcome
	calls  *calls
	events *eventQueue
	words  words

	introduced introduced
	gathering  gatherer
	contention wait.Contention // among pollers and waiters
	policy     policy
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

	stop    atomic.Bool // the stream has ended: waiters give up
	copier  []byte
	probe   []byte // the nonce of hello
	workers sync.WaitGroup
}

// policy is how the program's pollers and waiters wait.
type policy struct{ poll, wait wait.Policy }

func newPolicy() policy {
	procs := runtime.GOMAXPROCS(0)
	return policy{poll: wait.Of(wait.AttachedPoll).On(procs), wait: wait.Of(wait.AttachedWait).On(procs)}
}

// fail ends everything that waits.
func (c *Client) fail(err error) {
	c.introduced.recall()
	c.calls.fail(err)
	c.events.fail(err)
	c.stop.Store(true)
	c.out.Hurry()
	c.words.wakeAll()
}

func (c *Client) send(op proto.Opcode, id uint64, body []byte) error {
	return c.out.Along(op, id, body)
}

// Doorbell tells the driver that work was posted on a QP or SRQ.
func (c *Client) Doorbell(h command.Handle) {
	if c.doorbells.Ring(uint32(h)) {
		c.wakeDriver()
	}
}

// wakeDriver wakes the loop if it wants to be woken.
func (c *Client) wakeDriver() { _ = c.wakeConn.Control(c.ring) }

// Poll yields the processor now and then, above all for the driver: a program that polls completion queues
// calls it after each empty poll; idle is the number of empty polls in a row. It reports whether it
// yielded, in which case it is worth polling again.
func (c *Client) Poll(idle uint32) bool {
	p := &c.policy.poll
	return c.contention.Due(p, idle) && c.contention.Yield(p, idle)
}

// Spins returns how many polls of an empty CQ, each with a call of Poll, are worthwhile before a wait.
func (c *Client) Spins() int { return int(c.policy.poll.Most) }

// Arena returns the memory of ring arena id, nil if there is none.
func (c *Client) Arena(id uint32) []byte {
	list := *c.arenas.Load()
	if uint64(id) >= uint64(len(list)) {
		return nil
	}
	return list[id]
}

// MemoryPath returns how the driver accesses memory outside segments.
func (c *Client) MemoryPath() command.MemoryPath { return c.about.Path }

// Driver returns the driver's name with its version, and its process id.
func (c *Client) Driver() (string, int) { return proto.NameOf(c.about.Driver), int(c.about.PID) }

var errClosed = command.Errorf(command.Canceled, "the attachment is closed")

// Close detaches: the driver destroys the program's objects. After that, rings and segments read as zeros.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.introduced.stop()
	c.gathering.stop()
	c.fail(errClosed)
	c.out.Hurry()
	_ = c.out.Stream(proto.OpGoodbye, 0, 0, nil) // without it the driver would assume that the program died
	err := c.conn.Close()
	c.workers.Wait()
	c.wake.Close()
	c.in.Close()
	for _, mem := range *c.arenas.Load() {
		shared.Retire(mem)
	}
	if c.tracks.mem != nil {
		shared.Retire(c.tracks.mem)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, mem := range c.segments {
		shared.Retire(mem)
	}
	c.segments = nil
	c.introduced.close()
	if c.copier != nil {
		_ = unix.Munmap(c.copier)
	}
	_ = unix.Munmap(c.probe)
	return err
}

// minor returns the minor version of the protocol that the driver speaks.
func (c *Client) minor() uint16 { return c.about.Minor }
