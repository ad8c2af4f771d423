package device

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/links"
)

// Fault is something that goes wrong in an adapter, on request, so that others can see what follows. It lasts until the adapter is
// restarted.
type Fault uint8

// The faults of an adapter.
const (
	FaultWire        Fault = 1 + iota // the link takes no packets
	FaultReceive                      // the link's descriptor is dead: it receives nothing, and says so
	FaultSend                         // the same for sending
	FaultCompletions                  // requests complete, and the completions stay in the engine
	FaultEvents                       // events of completion queues are not raised
	FaultLoop                         // the port has no turns
	FaultHost                         // the host of the Ethernet function takes nothing
	FaultPanic                        // an engine panics in the port's next turn
	FaultTurn                         // the port's next turn never ends, and takes the whole loop with it
)

// portFault is a fault of a port's turn.
type portFault uint8

const (
	halted portFault = 1 + iota // it is left out
	panics
	endless
)

// Inject makes a fault happen in an enabled adapter. Errors are *command.Error.
func (h *Host) Inject(index uint32, f Fault) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	if !a.enabled {
		return command.Errorf(command.Removed, "adapter %q is disabled: nothing can go wrong in it", a.name)
	}
	switch f {
	case FaultWire:
		a.links.Break(links.Stuck)
	case FaultReceive:
		a.links.Break(links.DeadReceive)
	case FaultSend:
		a.links.Break(links.DeadSend)
	case FaultCompletions:
		a.function.Suspend(true)
	case FaultEvents:
		a.mute = true
	case FaultHost:
		if !a.nic.on() {
			return command.Errorf(command.Unsupported, "adapter %q has no Ethernet function", a.name)
		}
		a.nic.side.Deafen()
	case FaultLoop:
		a.port.fault = halted
	case FaultPanic:
		if h.cfg.Broken == nil {
			return command.Errorf(command.Unsupported, "nobody mends the port of this host")
		}
		a.port.fault = panics
	case FaultTurn:
		if h.cfg.Broken == nil {
			return command.Errorf(command.Unsupported, "nobody watches the loop of this host")
		}
		a.port.fault = endless
	default:
		return command.Errorf(command.Invalid, "fault %d, want 1 to %d", f, FaultTurn)
	}
	return nil
}

// mendFaults ends the faults of an adapter that is disabled. Those of the port and its link are not a virtual function's.
func (a *adapter) mendFaults() {
	a.function.Suspend(false)
	a.mute = false
	if a.virtual() {
		return
	}
	a.links.Mend()
	if a.port.fault == halted || a.port.fault == panics && !a.port.broken {
		a.port.fault = 0
	}
}
