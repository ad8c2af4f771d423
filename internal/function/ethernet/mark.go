package ethernet

import (
	"encoding/binary"
	"net/netip"

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
	h, b := &p.headers, p.Frame
	x := qos.Flow{Type: uint16(h.Type)}
	if h.Version != 0 {
		ip := b[h.Network:]
		if x.Protocol = h.Protocol; h.Version == 4 {
			x.To, x.Class = netip.AddrFrom4([4]byte(ip[16:])), ip[1]
		} else {
			x.To, x.Class = netip.AddrFrom16([16]byte(ip[24:])), ip[0]<<4|ip[1]>>4
		}
		if h.Data != 0 {
			x.From, x.Port = binary.BigEndian.Uint16(b[h.Transport:]), binary.BigEndian.Uint16(b[h.Transport+2:])
		}
	}
	priority, named := f.mark.Frame(&x)
	if p.priority = priority; named {
		tci = tci&(eth.VIDMask|1<<12) | uint16(priority)<<13
	}
	return tci
}
