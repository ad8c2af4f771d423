package port

import (
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// Untagged is where frames count that name no priority.
const Untagged = frame.Priorities

// Tally counts frames, and their bytes with all headers and without the FCS. A frame of several segments counts as those that it is on
// a wire which takes none.
type Tally struct {
	Packets, Bytes uint64
}

func (t *Tally) add(packets, bytes int) {
	t.Packets += uint64(packets)
	t.Bytes += uint64(bytes)
}

// socketHeaders returns the length of the headers that a socket writes before a packet, and removes.
func socketHeaders(ipv6 bool) int {
	if ipv6 {
		return eth.EthernetLen + eth.IPv6Len + eth.UDPLen
	}
	return eth.EthernetLen + eth.IPv4Len + eth.UDPLen
}

// count counts sealed packets of one priority, and returns how many bytes they have on a wire.
func (p *Port) count(priority uint8, out []frame.Out) (sum int) {
	s := p.sender
	leaves := !s.cut
	for i := range out {
		o := &out[i]
		packets, bytes := o.OnWire()
		bare := s.Kind == RDMA && o.HeadStart == frame.HeadRoom && o.Route != nil // a socket writes the headers
		if bare {
			bytes += socketHeaders(o.Route.Dst.Is6())
		}
		sum += bytes
		if !leaves || o.Inside {
			continue
		}
		slot := priority
		if priority == p.Classifier.Untagged && !p.names(bare, o) {
			slot = Untagged
		}
		p.counters.Sent[slot].add(packets, bytes)
	}
	return sum
}

// names reports whether a packet that leaves tells its priority to who receives it.
func (p *Port) names(bare bool, o *frame.Out) bool {
	if bare {
		return p.Classifier.ByDSCP
	}
	_, named := p.Classifier.Frame(o.Head[o.HeadStart:o.HeadEnd])
	return named
}

// arrived counts what a wire has brought.
func (p *Port) arrived(w *Wire, in []frame.In) {
	if len(in) == 0 {
		return
	}
	c := &p.counters.Arrived
	if in[0].Raw && !w.InfiniBand {
		n, sum := 0, 0
		for i := range in {
			b := in[i].Data
			if !p.Classifier.ByDSCP && len(b) > 12 && b[12] != 0x81 && in[i].Task.Kind == offload.Whole { // no tag, as most
				n, sum = n+1, sum+len(b)
				continue
			}
			slot, named := p.Classifier.Frame(b)
			if !named {
				slot = Untagged
			}
			packets, bytes := in[i].OnWire()
			c[slot].add(packets, bytes)
		}
		c[Untagged].add(n, sum)
		return
	}
	headers := 0
	if !in[0].Raw {
		headers = socketHeaders(in[0].Src.Is6())
	}
	if p.Classifier.ByDSCP && !w.InfiniBand {
		for i := range in {
			c[in[i].TrafficClass>>5].add(1, in[i].Len()+headers)
		}
		return
	}
	bytes := len(in) * headers
	for i := range in {
		bytes += in[i].Len()
	}
	c[Untagged].add(len(in), bytes)
}
