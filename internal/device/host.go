package device

import (
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/lease"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/os/monotonic"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/internal/wait"
)

// Host is the adapters of a process and the loop that drives them.
type Host struct {
	cfg   Config
	log   *slog.Logger
	start time.Time
	zero  uint64     // see Zero
	rand  *rand.Rand // under the loop lock

	// The loop lock. Its holder owns everything below.
	mu        sync.Mutex
	adapters  []*adapter
	ports     []*portLoop
	engines   []*transport.Engine // of the adapters
	local     transport.Exchange  // between them
	clients   []*Client
	closed    bool
	watched   int        // changes of what the poll owner watches
	arrived   int        // packets that arrived in this step
	flagged   bool       // attached programs were told that the loop sleeps
	drove     clock.Time // when a program that polls or waits last ran a step
	driver    *Client    // the one whose program polls or waits and runs this step; nil: the loop's own thread does
	woken     bool       // this step is the first after a sleep
	commanded bool       // this step ends a command
	trace     *trace.Ring
	fresh     bool // there was a command since the poll owner last slept
	polled    bool // same as sleep.polls
	found     bool // the last step that polled the links found something: the next one returns buffers they have lent

	leases        lease.Book
	moderated     []*cq // those that hold back an event
	moderationDue clock.Time

	unnotified []*Client // those to be told of events

	badDoorbells, eventOverflows, commands uint64

	onFabric atomic.Bool // some adapter's port is InfiniBand

	rung atomic.Bool // a doorbell was rung, or Wake called, since the last step began

	sleep     sleepState
	placement placement
	wg        sync.WaitGroup
	closing   atomic.Bool
	policy    policy
	// contention is among the programs that poll, and those they wait for.
	contention wait.Contention
	done       chan struct{} // closed with the host: ends the address follower

	gidInterval chan time.Duration // to the address follower
	// wireOf asks the system for the state of the interface of a port of sockets; it takes long.
	wireOf func(*AdapterConfig) (systemWire, bool)
	// namespace is the network namespace that the host's own goroutines are in.
	namespace uint64

	subscribers notify.Subscribers
}

// NewHost creates a Host without adapters and starts its background goroutine.
func NewHost(cfg Config) (*Host, error) {
	if cfg.GIDInterval > 10*time.Second {
		return nil, command.Errorf(command.Invalid, "GIDInterval is %v, want at most 10s (UpdateGIDTimerFrequency 0 to 10000)",
			cfg.GIDInterval)
	}
	if cfg.GIDInterval == 0 {
		cfg.GIDInterval = defaultGIDInterval
	}
	h := &Host{
		cfg: cfg, log: cfg.Log, start: time.Now(), done: make(chan struct{}), gidInterval: make(chan time.Duration),
		wireOf:        (*AdapterConfig).interfaceWire,
		moderationDue: clock.Never,
		rand:          rand.New(source(cfg.Seed)),
		policy:        newPolicy(cfg.Spin, runtime.GOMAXPROCS(0)),
	}
	h.zero = monotonic.At(h.start)
	h.namespace = <-ownNamespace()
	h.leases = lease.NewBook(h.now)
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if err := h.sleep.open(); err != nil {
		return nil, fmt.Errorf("device: %w", err)
	}
	if !cfg.NoBackground {
		h.wg.Add(1)
		go h.background()
	}
	h.wg.Add(1)
	go h.followAddresses()
	return h, nil
}

// policy is how those who drive the loop wait.
type policy struct{ poll, wait, background wait.Policy }

// newPolicy returns the policies of the table for this many processors for goroutines (GOMAXPROCS), with another
// spin if it is not 0.
func newPolicy(spin time.Duration, processors int) policy {
	p := policy{
		poll: wait.Of(wait.EmbeddedPoll).On(processors), wait: wait.Of(wait.EmbeddedWait).On(processors),
		background: wait.Of(wait.Background).On(processors),
	}
	if spin != 0 {
		p.wait.Spin, p.background.Spin = spin, spin
	}
	return p
}

// source returns the source of random numbers for a seed: with 0 the system's, which nobody can predict
// from numbers that he has seen.
func source(seed uint64) rand.Source {
	if seed == 0 {
		return system{}
	}
	return rand.NewPCG(seed, 0x5f7c1)
}

// system is the system's source of random numbers.
type system struct{}

// Uint64 implements rand.Source.
func (system) Uint64() uint64 {
	var b [8]byte
	_, _ = crand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint64(b[:])
}

// Zero returns the time of package monotonic at which the host's clock, which is that of completions, was 0.
func (h *Host) Zero() uint64 { return h.zero }

// now reads the clock. The loop does so once per iteration.
func (h *Host) now() clock.Time {
	if h.cfg.Now != nil {
		return h.cfg.Now()
	}
	return clock.Time(time.Since(h.start))
}

// lock takes the loop lock for a control command.
func (h *Host) lock() { h.mu.Lock() }

// unlock releases the loop lock after running the loop for those who rang a doorbell while it was held.
func (h *Host) unlock() {
	for range 4 {
		h.notifyAll()
		h.mu.Unlock()
		if !h.rung.Load() || !h.mu.TryLock() {
			return
		}
		h.step()
	}
	h.notifyAll()
	h.mu.Unlock()
	if h.rung.Load() { // they keep ringing: the background goroutine takes over
		h.sleep.rouse()
	}
}

// finish releases the loop lock after a control command that may have left work for the loop: packets to send,
// events, new deadlines.
func (h *Host) finish() {
	h.commanded = true
	h.step()
	h.commanded = false
	h.fresh = true
	h.unlockTimed()
	h.sleep.roles.Soon()
}

// unlockTimed releases the loop lock, and wakes the poll owner if it would otherwise sleep past a deadline.
func (h *Host) unlockTimed() {
	if !h.sleep.asleep.Load() { // whoever goes to sleep later recomputes the deadline
		h.unlock()
		return
	}
	due := h.deadline()
	h.unlock()
	h.sleep.sooner(due)
}

// Wake makes the loop check its links and doorbells now. Links without descriptors call it when packets
// arrive.
func (h *Host) Wake() {
	h.rung.Store(true)
	h.sleep.wake()
}

// Close closes the remaining clients, the adapters and their links, and ends the background goroutine.
func (h *Host) Close() error {
	h.lock()
	if h.closed {
		h.unlock()
		return nil
	}
	h.closed = true
	clients := append([]*Client(nil), h.clients...)
	h.unlock()
	for _, c := range clients {
		c.Close()
	}
	h.closing.Store(true)
	close(h.done)
	h.sleep.stop()
	h.wg.Wait()
	h.lock()
	defer h.mu.Unlock()
	for _, p := range h.ports {
		p.stopAgent()
		p.stopFlow()
	}
	var first error
	for _, a := range h.adapters {
		if err := a.close(); err != nil && first == nil {
			first = err
		}
	}
	h.adapters = nil
	if err := h.sleep.close(); err != nil && first == nil {
		first = err
	}
	return first
}

// adapter returns the adapter with this index. The caller holds the loop lock.
func (h *Host) adapter(index uint32) (*adapter, error) {
	if index >= uint32(len(h.adapters)) {
		return nil, command.Errorf(command.NotFound, "adapter %d: there are %d, numbered from 0", index, len(h.adapters))
	}
	return h.adapters[index], nil
}
