package eswitch

import (
	"encoding/binary"
	"fmt"

	"github.com/softvpi/softvpi/wire/eth"
)

// mostTypes is how many EtherTypes can be listed: VFAllowedTxEtherType0 to 7.
const mostTypes = 8

// LLC in a list stands for frames that have a length in place of a type (WinOF 5.50, 4.5.3.5.3.1, LLC Packets).
const LLC eth.EtherType = 0

const (
	typeFCoE   eth.EtherType = 0x8906
	typeFIP    eth.EtherType = 0x8914
	leastType  eth.EtherType = 0x600 // what is less is a length (IEEE 802.3, 3.2.6)
	roomForOne               = 1     // one of the pair of FCoE stands for both
)

// Protection is which EtherTypes virtual functions may send (WinOF-2 24.4, VF Spoof Protection; WinOF 5.50, 4.5.3.5.3). The zero
// value is the manuals' default: on, with IPv4, ARP and IPv6. Whatever it says, a virtual function sends from its own addresses
// alone, and no flow control: a pause of one would stop all others.
type Protection struct {
	off   bool
	types [mostTypes + roomForOne]eth.EtherType
	n     int
}

// NewProtection returns the protection of the keys: VFAllowedTxEtherTypeListEnable, and those of VFAllowedTxEtherType0 to 7 that are
// set; one at least replaces the default table. The error is a *FieldError.
func NewProtection(enabled bool, list []eth.EtherType) (p Protection, err error) {
	if len(list) > mostTypes {
		return p, &FieldError{"number of EtherTypes", len(list), "at most 8"}
	}
	p.off = !enabled
	p.n = copy(p.types[:], list)
	// "When one of the following Ethertypes is enabled/disabled, the other is automatically enabled/disabled" (WinOF 5.50, 4.5.3.5.3.1).
	fcoe, fip := p.lists(typeFCoE), p.lists(typeFIP)
	if fcoe != fip {
		other := typeFCoE
		if fcoe {
			other = typeFIP
		}
		p.types[p.n] = other
		p.n++
	}
	return p, nil
}

// Off reports whether every type may be sent, but flow control.
func (p *Protection) Off() bool { return p.off }

// Types returns the types that may be sent if it is on; LLC stands for lengths.
func (p *Protection) Types() []eth.EtherType {
	if p.n == 0 {
		return []eth.EtherType{eth.TypeIPv4, eth.TypeARP, eth.TypeIPv6}
	}
	return p.types[:p.n]
}

func (p *Protection) lists(t eth.EtherType) bool {
	for _, o := range p.types[:p.n] {
		if o == t {
			return true
		}
	}
	return false
}

// Allows reports whether a virtual function may send frames of a type, or of a length.
func (p *Protection) Allows(t eth.EtherType) bool {
	switch {
	case t == eth.TypeMACControl:
		return false
	case p.off:
		return true
	case p.n == 0:
		return t == eth.TypeIPv4 || t == eth.TypeARP || t == eth.TypeIPv6
	case t < leastType:
		return p.lists(LLC)
	}
	return p.lists(t)
}

// offence is what a port has sent against one of the two rules.
type offence struct {
	frames, told uint64
	last         uint64
}

// Report says that a function has sent what spoof protection does not allow, for a log.
type Report struct {
	Port   Port
	Reason Reason // SourceMAC or EtherType
	Frames uint64 // since the last report
	// MAC or Type is that of the last one.
	MAC  eth.MAC
	Type eth.EtherType
}

// String is the text for the log.
func (r Report) String() string {
	what := fmt.Sprintf("from an address that is not its own, the last from %s", r.MAC)
	if r.Reason == EtherType {
		what = fmt.Sprintf("of an EtherType that is not allowed, the last 0x%04x", uint16(r.Type))
	}
	return fmt.Sprintf("%s sent %d frames %s: they were dropped", r.Port, r.Frames, what)
}

// Reports adds what there is to log since the last call to list: at most two for a function, however much it has sent, so that
// nobody floods the log. Who keeps the log chooses how often it asks.
func (s *Switch) Reports(list []Report) []Report {
	for p, o := range s.ports {
		if o == nil {
			continue
		}
		for i := range o.spoofed {
			x := &o.spoofed[i]
			if x.frames == x.told {
				continue
			}
			r := Report{Port: Port(p), Reason: SourceMAC, Frames: x.frames - x.told}
			if x.told = x.frames; i == 0 {
				var b [8]byte
				binary.BigEndian.PutUint64(b[:], x.last)
				copy(r.MAC[:], b[2:])
			} else {
				r.Reason, r.Type = EtherType, eth.EtherType(x.last)
			}
			list = append(list, r)
		}
	}
	return list
}

// guard returns why a virtual function may not send a frame; 0: it may.
func (s *Switch) guard(o *port, h *header) Reason {
	if !o.owns(h.src) {
		o.spoofed[0].frames++
		o.spoofed[0].last = h.src
		return SourceMAC
	}
	if !s.cfg.Protection.Allows(h.of) {
		o.spoofed[1].frames++
		o.spoofed[1].last = uint64(h.of)
		return EtherType
	}
	return 0
}

// Guard reports why a function may not send a frame that goes by no rule of the switch but spoof protection, and counts it; 0: it may. made
// is as in Recent.
func (s *Switch) Guard(from Port, head []byte, made bool) Reason {
	if int(from) >= mostPorts || s.ports[from] == nil {
		return NoPort
	}
	var h header
	why, o := Reason(0), s.ports[from]
	switch {
	case !s.up.Has(from):
		why = NoPort
	case s.blocked.Has(from):
		why = Blocked
	case !h.parse(head):
		why = Malformed
	case from.IsVF() && !made:
		why = s.guard(o, &h)
	}
	if why != 0 {
		o.counters.Dropped[why]++
		return why
	}
	o.counters.In.count(len(head))
	return 0
}

// owns reports whether an address is one of the port's.
func (o *port) owns(mac uint64) bool {
	for _, m := range o.macs {
		if m == mac {
			return true
		}
	}
	return false
}
