package links

import (
	"syscall"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
)

// Fault is what is wrong with a link, on request; faults add up.
type Fault uint8

// The faults. DeadReceive and DeadSend are what a link does whose descriptor has died.
const (
	Stuck       Fault = 1 << iota // it takes no packets
	DeadReceive                   // Receive fails
	DeadSend                      // Send fails
)

// faulty is a link with a fault. Links without one are not wrapped.
type faulty struct {
	link.Link
	fault Fault
}

// Send implements link.Link.
func (l *faulty) Send(frames []frame.Out) (int, error) {
	switch {
	case l.fault&Stuck != 0:
		return 0, nil
	case l.fault&DeadSend != 0:
		return len(frames), syscall.EBADF
	}
	return l.Link.Send(frames)
}

// Receive implements link.Link.
func (l *faulty) Receive(in []frame.In) (int, error) {
	if l.fault&DeadReceive != 0 {
		return 0, syscall.EBADF
	}
	return l.Link.Receive(in)
}

// Break gives all open links of the set a fault, until they are closed or mended.
func (p *Set) Break(f Fault) {
	for _, o := range p.addresses {
		if o = o.driven(); o.Link != nil {
			if o.fault == nil {
				o.fault = &faulty{}
			}
			o.fault.fault |= f
			o.shorten()
		}
	}
}

// Mend ends the faults of the set's links.
func (p *Set) Mend() {
	for _, o := range p.addresses {
		if o = o.driven(); o.fault != nil {
			if o.fault = nil; o.Link != nil {
				o.shorten()
			}
		}
	}
}

// driven returns the address that has the link: the owner's if it is shared.
func (p *Address) driven() *Address {
	if p.owner != nil {
		return p.owner
	}
	return p
}

// Failures returns how often the open links of the set have failed to receive and to send.
func (p *Set) Failures() (receive, send uint64) {
	receive, send = p.retired.receiveFailures, p.retired.sendFailures
	for _, o := range p.addresses {
		receive, send = receive+o.receiveFailures, send+o.sendFailures
	}
	return receive, send
}
