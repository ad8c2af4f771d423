package port

import (
	"cmp"
	"net/netip"

	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/overlay"
	"github.com/softvpi/softvpi/internal/wakeup"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// Kind is what a station takes of the frames to its MAC.
type Kind uint8

const (
	// RDMA stations take RoCE packets, or InfiniBand's.
	RDMA Kind = iota
	// Ethernet stations take everything else, in every VLAN: their functions filter.
	Ethernet
	// Steered stations, whose functions are Steerers, take what their rules match but RoCE to an RDMA function, before
	// Ethernet stations do.
	Steered
	// Agent stations are the port's own end of the protocols between it and the other end of a wire, one for each wire. Their
	// functions, which are Takers, take their frames before anybody else does; nobody else at the port gets what they send.
	Agent
)

// Station is a function's place at a port: what is for it, and how its packets look on the wire.
type Station struct {
	// MAC and VLAN tell its frames on a wire of several stations; VLAN is an identifier, 0 for untagged frames.
	MAC  eth.MAC
	VLAN uint16
	// Owns reports whether it has a GID, which tells its packets on an InfiniBand wire of several stations. nil: it is the only one.
	Owns func(gid netip.Addr) bool
	// OwnsLID reports whether packets to a LID of an InfiniBand wire are for it alone; nil: it shares the LIDs of the others that have none
	// of their own.
	OwnsLID func(ib.LID) bool
	// Virtual stations of an InfiniBand wire send nothing to QP0; Refused counts what they tried.
	Virtual bool
	Refused uint64
	Kind    Kind
	// At is its port at the switch that is embedded in its wire, if one is; Tag is the tag, an identifier and perhaps a priority, of a
	// VLAN that its function, which is no RDMA function, knows nothing of.
	At  eswitch.Port
	Tag uint16
	// Promiscuous Ethernet stations also take frames to MACs that no station has.
	Promiscuous bool
	// UDPPort is the UDP destination port of RoCE v2 at this MAC (roce_udp_dport); 0 means 4791.
	UDPPort uint16
	// Attached reports whether the function takes packets to a group of an InfiniBand wire. What it sends there itself the port
	// brings back, since no switch does (IBA 10.5.3.2). nil: it takes none.
	Attached func(group netip.Addr) bool
	// Carried counts its frames on wires of whole frames; nil: nobody asks.
	Carried *Carried
	// Sleeps is told when the port asks its function for nothing any more, since it is a Sleeper with nothing to do, and when it does
	// again; nil: nobody wants to know.
	Sleeps func(bool)

	port     *Port
	function Function
	placer   Placer // function, if it is one
	lender   Lender // likewise
	waiter   Waiter
	filler   Filler
	numbered Numbered
	patient  Patient
	obeyed   uint8   // priorities that patient was told
	steerer  Steerer // function of a Steered station
	taker    Taker   // function of an Agent station
	sleeper  Sleeper // function, if it is one
	bell     wakeup.Bell
	index    int    // among the port's stations
	rested   uint16 // turns in a row in which it had nothing to do
	gone     bool   // it is at the port no longer
	place    int    // among those of the wire that was asked last
	shared   bool   // it has a Share, or a part in one
	wires    []*Wire
	off      bool
	cut      bool
	sent     [frame.Priorities]uint64 // bytes, of each priority; or more, of who had nothing to send for a time
	asked    uint64                   // the last pull in which it was
	spoofed  uint64                   // frames of this pull that its switch has refused as spoofed
	most     bucket                   // what it may still send; see Share
	least    bucket                   // what it is owed
	joint    *Station                 // whose share it has a part in; nil: its own
}

// Wire is a port's view of one link: the stations that it serves, with the encapsulation of each one's packets.
type Wire struct {
	// InfiniBand says that its link carries packets from the LRH on.
	InfiniBand bool
	// Large says that its link takes Ethernet frames of any size, with checksums still to be made (frame.Out's Task), as
	// interfaces of virtual machines and the memory of a process do.
	Large bool
	// Shown says that somebody is shown all its frames, as they are on a wire that takes none of several segments.
	Shown bool

	embedded *embedded // the switch there; nil: none
	overlay  *Overlay  // for stations in virtual subnets; nil: there is none

	places  []place
	agent   *place // its Agent station; nil: none
	flow    *flow  // what takes its MAC control frames; nil: it is none of whole Ethernet frames
	steered int    // Steered stations among places
	mac     int    // the place of the station that had the last frame
}

// place is a station on a wire.
type place struct {
	station *Station
	addr    netip.Addr   // of the wire that carries packets of one address only; else invalid
	encap   *encap.Encap // nil: packets go without outer headers
}

// Attach adds a function to the port.
func (p *Port) Attach(f Function, s Station) *Station {
	s.port, s.function = p, f
	s.placer, _ = f.(Placer)
	s.lender, _ = f.(Lender)
	s.waiter, _ = f.(Waiter)
	s.filler, _ = f.(Filler)
	s.numbered, _ = f.(Numbered)
	s.patient, _ = f.(Patient)
	switch s.Kind {
	case Steered:
		s.steerer = f.(Steerer)
	case Agent:
		s.taker = f.(Taker)
	}
	o := &s
	o.bell = wakeup.New(func() { p.wake(o) })
	if o.sleeper, _ = f.(Sleeper); o.sleeper != nil {
		o.sleeper.SetBell(&o.bell)
	}
	p.stations = append(p.stations, o)
	p.enlist()
	p.listShared()
	return o
}

// Detach removes a station with its places on all wires.
func (p *Port) Detach(s *Station) {
	for len(s.wires) > 0 {
		s.Unplug(s.wires[0])
	}
	s.bell.Ring()
	for i, o := range p.stations {
		if o == s {
			p.stations = append(p.stations[:i], p.stations[i+1:]...)
			break
		}
	}
	s.gone = true
	p.enlist()
	s.joint = nil
	s.SetShare(0, Share{})
}

// Plug gives a station a place on a wire. addr is the one source address of the packets that the wire carries for it, as
// a socket does; if not valid it carries all. A nil e leaves packets without outer headers.
func (s *Station) Plug(w *Wire, addr netip.Addr, e *encap.Encap) {
	s.wires = append(s.wires, w)
	if s.Kind == Agent {
		w.agent = &place{station: s}
		return
	}
	w.places = append(w.places, place{s, addr, e})
	if s.Kind == Steered {
		w.steered++
	}
}

// Unplug removes a station from a wire.
func (s *Station) Unplug(w *Wire) {
	if s.Kind == Agent {
		w.agent = nil
	}
	for i := range w.places {
		if w.places[i].station == s {
			w.places = append(w.places[:i], w.places[i+1:]...)
			if s.Kind == Steered {
				w.steered--
			}
			break
		}
	}
	w.mac = 0
	for i, o := range s.wires {
		if o == w {
			s.wires = append(s.wires[:i], s.wires[i+1:]...)
			return
		}
	}
}

// Reframe exchanges the encapsulation of a station's packets on a wire.
func (s *Station) Reframe(w *Wire, e *encap.Encap) {
	for i := range w.places {
		if w.places[i].station == s {
			w.places[i].encap = e
		}
	}
}

// Switch turns a station on or off. One that is off is not asked for packets, and what arrives for it is dropped.
func (s *Station) Switch(on bool) {
	s.off = !on
	s.bell.Ring()
}

// Cut says whether the station is cut off from its wires, as one whose link is down: it is asked for packets as always, but
// they are lost, as is what arrives for it from a link or another station.
func (s *Station) Cut(off bool) { s.cut = off }

// TakesLarge reports whether an Ethernet frame to a MAC, in a VLAN by its tag, 0: without one, may be handed out as large as it is, with
// checksums still to be made: its way is in memory, to a wire that says so or another function of the port. Otherwise the function
// finishes it.
func (s *Station) TakesLarge(dst eth.MAC, vlan uint16) bool {
	if len(s.wires) != 1 || s.wires[0].steered > 0 { // rules are for frames as they are on a wire
		return false
	}
	w := s.wires[0]
	if t := w.overlays(s); t != nil {
		return !w.Shown && t.Inside(overlay.Port(s.At), dst)
	}
	if e := w.embedded; e != nil {
		return w.Large || dst[0]&group == 0 && !w.Shown && e.Inside(s.At, dst, cmp.Or(vlan, s.Tag&eth.VIDMask))
	}
	return w.Large || dst[0]&group == 0 && !w.Shown && w.other(s, dst)
}

// Encloses reports whether a large TCP frame of n bytes to a MAC that leaves in a tunnel of the station's virtual subnet may be handed out
// as large as it is, though TakesLarge says no.
func (s *Station) Encloses(dst eth.MAC, n int) bool {
	if len(s.wires) != 1 || s.wires[0].steered > 0 || !s.wires[0].Large {
		return false
	}
	t := s.wires[0].overlays(s)
	return t != nil && t.Encloses(overlay.Port(s.At), dst, n)
}

// other reports whether a station other than s has a MAC.
func (w *Wire) other(s *Station, dst eth.MAC) bool {
	for i := range w.places {
		if o := w.places[i].station; o != s && o.MAC == dst {
			return true
		}
	}
	return false
}

// place returns the station's place on the wire.
func (w *Wire) place(s *Station) *place {
	if s.Kind == Agent {
		return w.agent
	}
	if s.place < len(w.places) && w.places[s.place].station == s {
		return &w.places[s.place]
	}
	for i := range w.places {
		if w.places[i].station == s {
			s.place = i
			return &w.places[i]
		}
	}
	return nil
}

// wire returns the wire and the place on it for packets from an address; nil if there is none.
func (s *Station) wire(src netip.Addr) (*Wire, *place) {
	if len(s.wires) == 1 {
		return s.wires[0], s.wires[0].place(s)
	}
	for _, w := range s.wires {
		if x := w.place(s); !x.addr.IsValid() || x.addr == src {
			return w, x
		}
	}
	return nil, nil
}
