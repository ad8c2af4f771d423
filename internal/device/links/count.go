package links

import (
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/udp"
)

// retire keeps an address's counters before its link is closed.
func (p *Set) retire(o *Address) {
	s := o.Link.Stats()
	s.ReceiveBuffer = 0 // the buffer is freed with the link
	p.retired.link.Add(s)
	add(&p.retired.encap, o.Encap.Counters())
	p.retired.receiveFailures += o.receiveFailures
	p.retired.sendFailures += o.sendFailures
	o.receiveFailures, o.sendFailures = 0, 0
}

// Stats returns the sums over the port's links, closed ones included.
func (p *Set) Stats() link.Stats {
	sum := p.retired.link
	for _, o := range p.addresses {
		if o.Link != nil && !o.shared {
			sum.Add(o.Link.Stats())
		}
	}
	return sum
}

// Counters returns the sums over the port's encapsulations, including those of closed links.
func (p *Set) Counters() encap.Counters {
	sum := p.retired.encap
	for _, o := range p.addresses {
		if o.Link != nil {
			add(&sum, o.Encap.Counters())
		}
	}
	return sum
}

func add(sum *encap.Counters, c encap.Counters) {
	sum.ICRCErrors += c.ICRCErrors
	sum.ICRCIDInferred += c.ICRCIDInferred
	sum.ICRCIDOpen += c.ICRCIDOpen
	sum.ICRCIDRefused += c.ICRCIDRefused
	sum.Placed += c.Placed
	sum.Malformed += c.Malformed
	sum.NotForUs += c.NotForUs
	sum.OtherMode += c.OtherMode
}

// Raw reports whether the port's own link is open and carries whole frames.
func (p *Set) Raw() bool {
	return len(p.addresses) > 0 && p.addresses[0].base != nil && p.addresses[0].base.Capabilities().Raw
}

// MTU returns the MTU of the port's own link, as in its Capabilities. The link must be open.
func (p *Set) MTU() int { return p.addresses[0].base.Capabilities().MTU }

// WireState returns the state of the port's own wire; ok is false if its link does not know it.
func (p *Set) WireState() (s link.State, ok bool) {
	if len(p.addresses) == 0 || p.addresses[0].carrier == nil {
		return s, false
	}
	o := p.addresses[0]
	o.known = o.carrier.WireState()
	return o.known, true
}

// SetMTU tells the port's own sockets that their interface has another MTU.
func (p *Set) SetMTU(mtu int) {
	for _, o := range p.addresses {
		if u, ok := o.base.(udp.Link); ok {
			u.SetMTU(mtu)
		}
	}
}

// Status returns that of the first UDP link that reports how it chooses source ports; the zero value if
// there is none.
func (p *Set) Status() (s udp.Status) {
	for _, o := range p.addresses {
		if u, ok := o.base.(udp.Link); ok && s.SourcePorts == "" {
			s = u.Status()
		}
	}
	return s
}
