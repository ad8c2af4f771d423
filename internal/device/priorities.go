package device

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/qos"
)

// Priorities is how a port treats priorities on its own.
type Priorities struct {
	// Own are the settings by which the port works without a peer.
	Own qos.Operative
	// Rates are the most that classes may send.
	Rates qos.Rates
	// Received says which priority received frames have.
	Received qos.Classifier
	// Marking is how what is sent gets a priority and marks of it, without Applications, which are the operative ones. RDMA
	// connections and address handles that exist follow it.
	Marking qos.Marking
}

// PriorityStatus is how a port treats priorities.
type PriorityStatus struct {
	// Operative are the settings by which the port works, with who decided them.
	Operative qos.Operative
	// Traffic is how it divides its wire by them.
	Traffic port.Traffic
	// Rates are the most that classes may send.
	Rates qos.Rates
	// Received says which priority received frames have, and Marking how those that are sent get theirs.
	Received qos.Classifier
	Marking  qos.Marking
}

// SetPriorities changes how the port of an adapter treats priorities, at once. Errors are a *command.Error:
// Unsupported on an adapter whose port has other settings.
func (h *Host) SetPriorities(index uint32, s Priorities) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	if err := a.checkPriorities(); err != nil {
		return err
	}
	if err := s.Own.ETS.Check(); err != nil {
		return command.Errorf(command.Invalid, "%v", err)
	}
	if s.Received.Untagged >= qos.Priorities {
		return command.Errorf(command.Invalid, "Received.Untagged is %d, want 0 to 7", s.Received.Untagged)
	}
	p := a.port
	p.Classifier, p.rates, p.marking = s.Received, s.Rates, s.Marking
	if p.agent == nil { // who knows them, too
		p.work(s.Own)
	} else {
		p.mark()
		p.divide()
	}
	return nil
}

// CheckPriorities reports why the port of an adapter has no settings of priorities of its own. Errors are a *command.Error.
func (h *Host) CheckPriorities(index uint32) error {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	return a.checkPriorities()
}

func (a *adapter) checkPriorities() error {
	switch {
	case a.ib != nil:
		return command.Errorf(command.Unsupported, "adapter %q is an InfiniBand port, which has virtual lanes in place of priorities", a.name)
	case a.port.functions[0] != a:
		return command.Errorf(command.Unsupported, "adapter %q is a function at the port of %q, whose settings of priorities count", a.name,
			a.port.functions[0].name)
	}
	return nil
}

// work makes the port work by these settings from now on: whatever acts on operative settings begins here.
func (p *portLoop) work(o qos.Operative) {
	p.operative = o
	p.mark()
	p.divide()
	p.followFlow()
}

// divide lets the scheduler divide the wire by the operative classes.
func (p *portLoop) divide() {
	t, was := port.TrafficOf(&p.operative.ETS, p.rates.Bytes()), p.Scheduler.Traffic()
	if t == was {
		return // what classes have sent in this round counts
	}
	if err := p.Scheduler.SetTraffic(p.host.now(), t); err != nil {
		p.host.log.Warn("the port does not follow its settings of priorities", "cause", err) // they have been checked
	}
	if t.Rate != was.Rate {
		for _, a := range p.functions {
			a.reroute()
		}
	}
}

// pcpShift is where the priority is in a tag (IEEE 802.1Q, 9.6).
const pcpShift = 13

// mark lets what is sent from now on have the marks of the rules and of the operative settings.
func (p *portLoop) mark() {
	p.marking.Applications, p.marking.Paused = p.operative.Applications, p.operative.PFC != 0
	for _, n := range p.nics {
		if n.f != nil {
			n.f.SetMarking(p.marking)
		}
	}
	p.remark()
}

// policy returns the policy for RDMA connections of a port; nil: there is none.
func (a *adapter) policy(port uint16) *qos.Policy {
	if a.ib != nil {
		return nil
	}
	return a.port.marking.Policies.NetDirect(port)
}

// limited reports whether classes of the port have rates, which only packets keep.
func (p *portLoop) limited() bool { return p.rates != qos.Rates{} }

// priorities returns how the adapter's port treats priorities; nil if the port is InfiniBand's.
func (a *adapter) priorities() *PriorityStatus {
	if a.ib != nil {
		return nil
	}
	return &PriorityStatus{Operative: a.port.operative, Traffic: a.port.Scheduler.Traffic(), Received: a.port.Classifier,
		Rates: a.port.rates, Marking: a.port.marking}
}
