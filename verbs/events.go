package verbs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/command"
)

// EventType is the kind of an asynchronous event (IBA 11.6.3).
type EventType uint32

// The asynchronous events.
const (
	EventCommunicationEstablished = EventType(command.EventCommunicationEstablished)
	EventSQDrained                = EventType(command.EventSQDrained)
	EventLastWQE                  = EventType(command.EventLastWQE)
	EventQPFatal                  = EventType(command.EventQPFatal)
	EventQPRequestError           = EventType(command.EventQPRequestError)
	EventQPAccessError            = EventType(command.EventQPAccessError)
	EventCQError                  = EventType(command.EventCQError)
	EventSRQLimit                 = EventType(command.EventSRQLimit)
	EventSRQError                 = EventType(command.EventSRQError)
	EventPathMigrated             = EventType(command.EventPathMigrated)
	EventGIDChange                = EventType(command.EventGIDChange)
	EventPortActive               = EventType(command.EventPortActive)
	EventPortDown                 = EventType(command.EventPortDown)
	EventDeviceFatal              = EventType(command.EventDeviceFatal)
	EventLIDChange                = EventType(command.EventLIDChange) // this and the following ones occur on InfiniBand ports only
	EventPKeyChange               = EventType(command.EventPKeyChange)
	EventSMChange                 = EventType(command.EventSMChange)
	EventClientReregister         = EventType(command.EventClientReregister)
)

var eventNames = map[EventType]string{
	EventCommunicationEstablished: "communication established", EventSQDrained: "send queue drained",
	EventLastWQE: "last WQE reached", EventQPFatal: "QP fatal error", EventQPRequestError: "QP request error",
	EventQPAccessError: "QP access error", EventCQError: "CQ error", EventSRQLimit: "SRQ limit reached",
	EventSRQError: "SRQ error", EventPathMigrated: "path migrated", EventGIDChange: "GID table changed",
	EventPortActive: "port active", EventPortDown: "port down", EventDeviceFatal: "adapter disabled or removed",
	EventLIDChange: "LID changed", EventPKeyChange: "P_Key table changed", EventSMChange: "subnet manager changed",
	EventClientReregister: "subnet manager asks to register again",
}

// String returns the event in words.
func (t EventType) String() string {
	if s, ok := eventNames[t]; ok {
		return s
	}
	return fmt.Sprintf("event %d", uint32(t))
}

// Event is an asynchronous event of the session's objects and adapters.
type Event struct {
	Type    EventType
	Device  uint32 // index of the adapter, see Device.Index
	Object  uint32 // handle of the QP, CQ or SRQ (its Handle method), 0 for port and device events
	Context uint64 // Context of that object, as set at its creation
	Missed  int    // events that were lost before this one because the watcher's queue was full
}

// Watcher receives the asynchronous events of a session.
type Watcher struct {
	d      *dispatcher
	ch     chan Event
	missed int // guarded by d.mu
}

// watcherDepth is how many events a watcher may fall behind.
const watcherDepth = 256

// Watch starts receiving asynchronous events. Earlier events are not delivered. A watcher that is 256
// events behind loses the newest.
func (h *Host) Watch() *Watcher {
	w := &Watcher{d: h.events, ch: make(chan Event, watcherDepth)}
	h.events.addWatcher(w)
	return w
}

// Next returns the next event, waiting until ctx ends. After Close of the watcher or the host it returns
// ErrClosed.
func (w *Watcher) Next(ctx context.Context) (Event, error) {
	select {
	case e, ok := <-w.ch:
		if ok {
			return e, nil
		}
		return Event{}, newError("watch", ErrClosed, "")
	default:
	}
	select {
	case e, ok := <-w.ch:
		if ok {
			return e, nil
		}
		return Event{}, newError("watch", ErrClosed, "")
	case <-ctx.Done():
		return Event{}, wrap("watch", ctx.Err())
	}
}

// Close stops the watcher.
func (w *Watcher) Close() error {
	w.d.removeWatcher(w)
	return nil
}

// dispatcher delivers the backend's events to watchers and CM ids.
type dispatcher struct {
	backend backend
	done    chan struct{}

	closing atomic.Bool // the program closes the session
	gone    atomic.Bool // the driver ended the session

	mu       sync.Mutex
	closed   bool
	watchers map[*Watcher]struct{}
	ids      map[command.Handle]*cmID
	nameless map[uint64]*cmID // ids without a handle, by their tokens
	tokens   uint64
	fatals   map[uint32]*atomic.Uint32 // by adapter: how often it was disabled
}

// life tells whether the adapter has been disabled since an object on it was created; the object cannot be
// used after that (WinOF manual 4.11.2).
type life struct {
	fatals *atomic.Uint32
	born   uint32
}

// live returns the life of an object that is about to be created.
func (d *Device) live() life { return life{d.fatals, d.fatals.Load()} }

func (l *life) over() bool { return l.fatals.Load() != l.born }

func newDispatcher(b backend) *dispatcher {
	return &dispatcher{
		backend: b, done: make(chan struct{}),
		watchers: make(map[*Watcher]struct{}), ids: make(map[command.Handle]*cmID), nameless: make(map[uint64]*cmID),
		fatals: make(map[uint32]*atomic.Uint32),
	}
}

// run delivers events until the backend is closed or gone, or ctx ends.
func (d *dispatcher) run(ctx context.Context) {
	defer close(d.done)
	buf := make([]command.Event, 64)
	for {
		n, err := d.backend.Events(ctx, buf)
		if err != nil {
			d.shutdown(d.lost())
			return
		}
		for i := range buf[:n] {
			d.dispatch(&buf[i])
		}
	}
}

// take delivers a CM event on a goroutine that must not block; it returns false if it would have to.
func (d *dispatcher) take(e *command.Event) bool {
	if e.Type < command.EventConnectRequest {
		return false
	}
	id := d.find(e)
	if id == nil {
		return e.Type != command.EventConnectRequest
	}
	if !id.mu.TryLock() {
		return false // its holder may be waiting for an answer that comes after this event
	}
	defer id.mu.Unlock()
	if e.Type == command.EventConnectRequest {
		return id.welcome(e)
	}
	id.see(e)
	return true
}

// find returns the id that an event belongs to, nil if it no longer exists.
func (d *dispatcher) find(e *command.Event) *cmID {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id := d.ids[e.Object]; id != nil {
		return id
	}
	return d.nameless[e.Context] // the event came before the handle
}

func (d *dispatcher) wait() { <-d.done }

func (d *dispatcher) dispatch(e *command.Event) {
	if e.Type < command.EventConnectRequest {
		if e.Type == command.EventDeviceFatal {
			d.fatal(e.Adapter).Add(1)
			d.failDevice(e)
		}
		d.broadcast(e)
		return
	}
	if id := d.find(e); id != nil {
		id.take(e)
		return
	}
	if e.Type == command.EventConnectRequest { // the listener is already gone
		_ = d.backend.Destroy(context.Background(), command.KindCM, e.NewID)
	}
}

// fatal returns the counter of how often the adapter was disabled.
func (d *dispatcher) fatal(adapter uint32) *atomic.Uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.fatals[adapter]
	if n == nil {
		n = new(atomic.Uint32)
		d.fatals[adapter] = n
	}
	return n
}

func (d *dispatcher) broadcast(e *command.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.watchers {
		ev := Event{Type: EventType(e.Type), Device: e.Adapter, Object: uint32(e.Object), Context: e.Context, Missed: w.missed}
		select {
		case w.ch <- ev:
			w.missed = 0
		default:
			w.missed++
		}
	}
}

// failDevice fails everything that waits on CM ids of an adapter that was disabled.
func (d *dispatcher) failDevice(e *command.Event) {
	for _, id := range d.snapshot() {
		if id.onAdapter(e.Adapter) {
			id.fail(ErrRemoved)
		}
	}
}

func (d *dispatcher) snapshot() []*cmID {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := make([]*cmID, 0, len(d.ids)+len(d.nameless))
	ids = slices.AppendSeq(ids, maps.Values(d.ids))
	return slices.AppendSeq(ids, maps.Values(d.nameless))
}

// lost ends the objects of a session that the driver ended, as if every adapter had been disabled, and
// returns the error that calls fail with from now on.
func (d *dispatcher) lost() error {
	if d.closing.Load() {
		return ErrClosed
	}
	d.gone.Store(true)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.fatals {
		n.Add(1)
	}
	return ErrRemoved
}

func (d *dispatcher) shutdown(why error) {
	ids := d.snapshot()
	d.mu.Lock()
	d.closed = true
	for w := range d.watchers {
		delete(d.watchers, w)
		close(w.ch)
	}
	d.mu.Unlock()
	for _, id := range ids {
		id.fail(why)
	}
}

func (d *dispatcher) addWatcher(w *Watcher) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		close(w.ch)
		return
	}
	d.watchers[w] = struct{}{}
}

func (d *dispatcher) removeWatcher(w *Watcher) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.watchers[w]; ok {
		delete(d.watchers, w)
		close(w.ch)
	}
}

// announce gives the id a token, by which events find it until it has a handle.
func (d *dispatcher) announce(id *cmID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		if d.closing.Load() {
			return ErrClosed
		}
		return ErrRemoved
	}
	d.tokens++
	id.token = d.tokens
	d.nameless[id.token] = id
	return nil
}

// add registers the id under its handle, by which later events find it.
func (d *dispatcher) add(id *cmID, h command.Handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.nameless, id.token)
	d.ids[h] = id
}

// remove forgets an id; h is 0 if it has no handle.
func (d *dispatcher) remove(id *cmID, h command.Handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.nameless, id.token)
	delete(d.ids, h)
}
