package rdma

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/rdma/gsi"
	"github.com/softvpi/softvpi/internal/function/rdma/ibport"
	"github.com/softvpi/softvpi/internal/function/rdma/remotecopy"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/internal/wakeup"
)

const (
	completeBatch  = 128
	completeRounds = 32
	eventBatch     = 32
	// holdTime is how long a function holds what it could send for the next turn of its program, at most.
	holdTime = 50 * time.Microsecond
)

// Programs are the owners of a function's queue pairs.
type Programs interface {
	gsi.Adapter
	// Completed takes completions of one completion queue, in order.
	Completed(now clock.Time, cq transport.CQRef, list []transport.Completion)
	// Raised takes an asynchronous event.
	Raised(now clock.Time, e *transport.Event)
}

// Config is what a Function consists of. All but IB is required.
type Config struct {
	Engine   *transport.Engine
	CM       *cm.Engine
	IB       *ibport.Port // nil: an Ethernet port
	Programs Programs
	// Occupied reports whether their owner has something of its own to do in the function's turns, when Station.Ring has to wake it;
	// nil: it never has.
	Occupied func() bool
}

// Function is an RDMA function.
type Function struct {
	Engine *transport.Engine
	CM     *cm.Engine
	GSI    gsi.QP1

	programs    Programs
	completions []transport.Completion
	events      []transport.Event
	remote      remotecopy.Copies
	unsettled   bool // connections broke since the CM was last asked
	suspended   bool // a fault: completions stay in the engine
	worked      bool
	occupied    func() bool
	bell        *wakeup.Bell
	driven      bool       // a program makes this turn
	held        bool       // it sends nothing for now
	heldUntil   clock.Time // when it must run if held
}

// New returns a function.
func New(cfg Config) *Function {
	f := &Function{
		Engine: cfg.Engine, CM: cfg.CM, programs: cfg.Programs, occupied: cfg.Occupied,
		completions: make([]transport.Completion, completeBatch), events: make([]transport.Event, eventBatch),
		GSI: gsi.New(gsi.Config{Adapter: cfg.Programs, Engine: cfg.Engine, CM: cfg.CM, IB: cfg.IB}),
	}
	f.remote.Init()
	return f
}

// Receive implements port.Function.
func (f *Function) Receive(now clock.Time, in []frame.In) { f.Engine.Receive(now, in) }

// Place implements port.Placer.
func (f *Function) Place(next *frame.Next, in []frame.In) (int, bool) {
	return f.Engine.Place(next, in)
}

// HasNumber implements port.Numbered.
func (f *Function) HasNumber(qpn uint32) bool { return f.Engine.HasNumber(qpn) }

// Expects implements port.Numbered.
func (f *Function) Expects(m []byte) bool { return f.GSI.Expects(m) }

// Drive tells whose turn it is; nil: that of no program.
func (f *Function) Drive(p *transport.Program) {
	f.driven = p != nil
	f.Engine.Drive(p)
}

// Advance implements port.Function: it does what is due, and passes on what programs are to learn.
//
// If that completes something for a program that runs this very turn, the function holds what it could send: most
// likely the program is about to answer, and all of it goes with the answer, or with the next turn.
func (f *Function) Advance(now clock.Time) {
	worked := false
	if f.Engine.Deadline() <= now {
		f.Engine.Advance(now)
		worked = true
	}
	if f.CM.Deadline() <= now {
		f.CM.Advance(now)
		worked = true
	}
	worked = f.remote.Move(now, f.Engine) || worked
	worked = f.GSI.Step(now) || worked
	completed := f.Complete(now)
	if completed && !f.held && f.driven {
		f.Hold(now)
	} else {
		f.held = false
	}
	f.worked = worked || completed || f.worked
}

// Worked reports whether there was anything to do since the last call.
func (f *Function) Worked() bool {
	worked := f.worked
	f.worked = false
	return worked
}

// Hold makes the function send nothing before the next Advance or Release, but not for long.
func (f *Function) Hold(now clock.Time) {
	f.held, f.heldUntil = true, now.Add(holdTime)
	f.bell.Ring()
}

// Held reports whether the function sends nothing because of Hold.
func (f *Function) Held() bool { return f.held }

// Release ends Hold.
func (f *Function) Release() { f.held = false }

// Pending implements port.Function.
func (f *Function) Pending() uint8 {
	if f.held {
		return 0
	}
	return f.Engine.Pending()
}

// Transmit implements port.Function.
func (f *Function) Transmit(now clock.Time, priority uint8, out []frame.Out) int {
	return f.Engine.Transmit(now, priority, out)
}

// Take implements port.Waiter.
func (f *Function) Take(now clock.Time, in []frame.In) (int, uint32) { return f.Engine.Take(now, in) }

// SetLossless implements port.Patient.
func (f *Function) SetLossless(priorities uint8) { f.Engine.SetLossless(priorities) }

// Lent implements port.Lender.
func (f *Function) Lent() bool { return f.Engine.Lent() }

// Deadline implements port.Function.
func (f *Function) Deadline() clock.Time {
	if f.Engine.Undelivered() {
		return 0
	}
	if f.held {
		return f.heldUntil
	}
	if f.unsettled || f.GSI.Waiting() {
		return 0
	}
	return clock.Min(f.Engine.Deadline(), f.CM.Deadline())
}

// Idle reports whether a turn in which nothing arrived has nothing else to do, like most turns of a program that waits.
func (f *Function) Idle(now clock.Time) bool {
	return !f.held && !f.unsettled && !f.GSI.Waiting() && f.remote.Idle() && f.Engine.Idle(now) && f.CM.Idle(now)
}
