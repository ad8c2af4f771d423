package plug

import (
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/udp"
)

// retire keeps what a plug has counted before its link is closed.
func (p *Panel) retire(o *Plug) {
	s := o.Link.Stats()
	s.ReceiveBuffer = 0 // it goes with the link
	p.retired.link.Add(s)
	add(&p.retired.encap, o.Encap.Counters())
}

// Stats sums the links of the port, closed ones included.
func (p *Panel) Stats() link.Stats {
	sum := p.retired.link
	for _, o := range p.plugs {
		if o.Link != nil {
			sum.Add(o.Link.Stats())
		}
	}
	return sum
}

// Counters sums the encapsulations of the port, of closed links too.
func (p *Panel) Counters() encap.Counters {
	sum := p.retired.encap
	for _, o := range p.plugs {
		if o.Link != nil {
			add(&sum, o.Encap.Counters())
		}
	}
	return sum
}

func add(sum *encap.Counters, c encap.Counters) {
	sum.ICRCErrors += c.ICRCErrors
	sum.ICRCIDInferred += c.ICRCIDInferred
	sum.Placed += c.Placed
	sum.Malformed += c.Malformed
	sum.NotForUs += c.NotForUs
}

// Raw reports whether the port's own link is plugged in and carries whole frames.
func (p *Panel) Raw() bool {
	return len(p.plugs) > 0 && p.plugs[0].base != nil && p.plugs[0].base.Capabilities().Raw
}

// MTU is the largest packet of the port's own link, as its Capabilities say; the port is plugged in.
func (p *Panel) MTU() int { return p.plugs[0].base.Capabilities().MTU }

// Status is that of the first UDP link that says how it chooses source ports; the zero value where there is none.
func (p *Panel) Status() (s udp.Status) {
	for _, o := range p.plugs {
		if u, ok := o.base.(udp.Link); ok && s.SourcePorts == "" {
			s = u.Status()
		}
	}
	return s
}
