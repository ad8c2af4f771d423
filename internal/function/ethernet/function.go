package ethernet

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
	"github.com/softvpi/softvpi/internal/moderation"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/wait"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// Function is an Ethernet function.
type Function struct {
	cfg    Config
	host   Host
	wire   Wire
	filter *filter.Filter
	spreading
	sleeping

	receive  []receiveQueue
	touched  uint64 // bit q: receive queue q has frames of the batch that is being received
	polling  wait.Polling
	pace     moderation.Setting
	list     []Packet         // what is indicated of that batch
	later    []Packet         // of list, while small ones are put before them
	parts    [][]byte         // of those in list that are divided otherwise than they came
	heads    []byte           // of those that are split, without their tags
	waiting  []Packet         // those of a ring, while they are indicated
	calls    int              // how often packets of a queue may still be indicated in its turn
	segments offload.Segments // of a large frame that the host does not take
	pieces   [2][]byte        // of one of them
	tunnel   tunnel.Frame     // the frame that is looked at, if it is in one

	send   []sendQueue
	ready  [frame.Priorities]bitmap // send queues with something to send at a priority
	cuts   [frame.Priorities]cut
	cursor [frame.Priorities]int // the send queue that had the last turn
	handed []handed              // the sends whose last frames the last Transmit handed out
	lent   bool                  // frames of it may be in use
	last   uint8                 // its priority
	route  frame.Route
	mark   *qos.Marking // of frames that say no priority; nil: none

	checkDue clock.Time // when queues are looked at

	counters Counters
	joining  offload.Connections
}

// New returns a function. The error is a *ConfigError.
func New(cfg Config, host Host) (*Function, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	f := &Function{cfg: cfg, host: host, wire: onWire{}, checkDue: clock.Never}
	f.route.SrcMAC = cfg.MAC
	f.filter = filter.New(cfg.filter())
	f.startSpreading()
	f.startReceive()
	f.startSend()
	if cfg.RSS == 0 {
		host.Raised(0, Event{Kind: RSSOff})
	}
	return f, nil
}

// Change changes the configuration while the function works: offloads, filters, moderation, completion. Sends that were accepted
// are sent. The error is a *ConfigError; nothing has changed then: a value is not allowed, or can only change when the function
// starts again, because rings and queues depend on it.
func (f *Function) Change(cfg Config) error {
	if err := f.cfg.changes(&cfg); err != nil {
		return err
	}
	cfg.Machine, cfg.Virtual = f.cfg.Machine, f.cfg.Virtual
	f.cfg = cfg
	was := f.filter.Over()
	f.filter.Change(cfg.filter())
	f.tellGroups(0, was)
	f.setCompletion()
	return nil
}

// Config returns the configuration.
func (f *Function) Config() Config { return f.cfg }

// onWire is where nothing is known of the wire.
type onWire struct{}

func (onWire) TakesLarge(eth.MAC, uint16) bool { return false }
func (onWire) Encloses(eth.MAC, int) bool      { return false }
func (onWire) Priority([]byte) uint8           { return 0 }

// MAC returns the function's address.
func (f *Function) MAC() eth.MAC { return f.cfg.MAC }

// SetWire tells the function where its frames go; without it every frame is finished here.
func (f *Function) SetWire(w Wire) { f.wire = w }

// Filter returns the function's filter, to change what it passes.
func (f *Function) Filter() *filter.Filter { return f.filter }

// Counters returns the function's counters, which keep counting.
func (f *Function) Counters() *Counters { return &f.counters }

// Joining returns of how many TCP connections segments are being joined ("TCP Active RSC Connections").
func (f *Function) Joining(now clock.Time) int { return f.joining.Active(now) }

// ReceiveQueues and SendQueues return the number of queues.
func (f *Function) ReceiveQueues() int { return len(f.receive) }

// SendQueues returns the number of send queues.
func (f *Function) SendQueues() int { return len(f.send) }

// Advance implements port.Function.
func (f *Function) Advance(now clock.Time) {
	f.balance(now)
	for i := range f.receive {
		f.advanceReceive(now, i)
	}
	for i := range f.send {
		f.advanceSend(now, i)
	}
	if f.checkDue <= now {
		f.lookAtQueues(now)
	}
}

// Deadline implements port.Function.
func (f *Function) Deadline() clock.Time {
	due := f.checkDue
	for i := range f.receive {
		due = clock.Min(due, f.receive[i].due)
	}
	for i := range f.send {
		due = clock.Min(due, f.send[i].due)
	}
	return due
}

// traffic counts a frame.
func (t *Traffic) count(b []byte, n int) {
	t.Frames++
	t.Bytes += uint64(n)
	switch dst := eth.MAC(b); {
	case dst[0]&1 == 0:
		t.Directed++
		t.DirectedBytes += uint64(n)
	case dst == eth.Broadcast:
		t.Broadcast++
		t.BroadcastBytes += uint64(n)
	default:
		t.Multicast++
		t.MulticastBytes += uint64(n)
	}
}

// SetGroups replaces the list of multicast addresses of which frames are received.
func (f *Function) SetGroups(now clock.Time, list []eth.MAC) {
	was := f.filter.Over()
	f.filter.SetGroups(list)
	f.tellGroups(now, was)
}

// tellGroups raises an event if there are now more multicast addresses than are filtered, and were not before.
func (f *Function) tellGroups(now clock.Time, was bool) {
	if f.filter.Over() && !was {
		f.host.Raised(now, Event{Kind: ManyGroups, Count: len(f.filter.Groups()), Limit: f.cfg.MaxNumOfMCList})
	}
}

// paceOf returns how the interrupts of queues are delayed (WinOF 5.50, 4.6.3 and 4.6.5).
func paceOf(c *Config) moderation.Setting {
	if c.InterruptModeration == 0 {
		return moderation.Setting{}
	}
	receive, send := paceFor(c.RxPacketCount, c.RxPacketTime), paceFor(c.TxPacketCount, c.TxPacketTime)
	m := moderation.Setting{
		Receive: receive, Send: send.Profile(uint32(c.TxIntModerationProfile)), Adaptive: c.RxIntModeration == adaptive,
		Low: uint32(c.PktRateLow), High: uint32(c.PktRateHigh),
	}
	if m.Adaptive {
		m.Receive = receive.Profile(uint32(c.RxIntModerationProfile))
	}
	return m
}
