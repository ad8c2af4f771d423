package ethernet

import (
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
)

// SetMarking says how frames that are sent without a tag, and without the wish for one, get a priority, from now on. Their DSCP
// is the host's (WinOF-2 Ethernet b, Setting the DSCP in the IP Header).
func (f *Function) SetMarking(m qos.Marking) {
	if f.mark = nil; !m.Idle() {
		f.mark = &m
	}
}

// marked gives a frame its priority, and returns the tag that it has for it.
func (f *Function) marked(p *posted, tci uint16) uint16 {
	x := qos.FlowOf(&p.headers, p.Frame)
	priority, named := f.mark.Frame(&x)
	if p.priority = priority; named {
		tci = tci&(eth.VIDMask|1<<12) | uint16(priority)<<13
	}
	return tci
}
