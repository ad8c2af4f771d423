package device

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
	"github.com/softvpi/softvpi/internal/hostside"
	"github.com/softvpi/softvpi/wire/eth"
)

// spoofInterval is how often somebody is told of spoofed frames of the virtual functions of a port, at most.
const spoofInterval = 10 * time.Second

// embedding is the switch between the functions of a port and its wire, which is there while the port has virtual ones.
type embedding struct {
	*eswitch.Switch // nil: there is none
	cfg             eswitch.Config
	reports         []eswitch.Report
	due             clock.Time // when somebody may be told of spoofed frames again
}

// Spoofed says that a virtual function has sent what spoof protection does not allow.
type Spoofed struct {
	Owner    uint32 // index of the adapter
	Function string
	Number   int // of the virtual function at its port, from 0 on
	eswitch.Report
}

// enlist gives an adapter's functions their port at the embedded switch. The first virtual function of a port makes that.
func (p *portLoop) enlist(a *adapter) error {
	if a.ib != nil { // the fabric is its switch
		return nil
	}
	if !a.virtual() {
		return p.seat(a)
	}
	if p.embedded.Switch == nil {
		p.embedded.Switch = eswitch.New(p.embedded.cfg)
		for _, o := range p.functions {
			if err := p.seat(o); err != nil {
				p.unembed()
				return err
			}
		}
		a.links.All()[0].Wire.Embed(p.embedded.Switch)
	}
	err := p.cede(a)
	if err == nil {
		err = p.seat(a)
	}
	if err == nil {
		err = p.admit(a)
	}
	if err != nil {
		p.discharge(a)
	}
	return err
}

// seat gives an adapter the first free port of its kind, if there is a switch: the port's first adapter is its physical function, others
// that share it have virtual ports.
func (p *portLoop) seat(a *adapter) error {
	if p.embedded.Switch == nil {
		return nil
	}
	at, most := eswitch.VPort, eswitch.MostVPorts
	switch {
	case a.cfg.ofTenant: // from the last one on: the numbers of virtual functions are theirs
		at, most = func(n int) eswitch.Port { return eswitch.VF(eswitch.MostVFs - 1 - n) }, eswitch.MostVFs
	case a.tenants():
		at, most = eswitch.VF, eswitch.MostVFs
	case len(p.functions) == 0 || p.functions[0] == a:
		at, most = func(int) eswitch.Port { return eswitch.PF }, 1
	}
	n := 0
	for n < most && p.embedded.Counters(at(n)) != nil {
		n++
	}
	if n == most {
		return command.Errorf(command.Exhausted, "Name %q: the port's switch has no port left: it has %d for functions of the kind", a.name, most)
	}
	a.at, a.number = at(n), n
	if err := a.reseat(); err != nil {
		a.at = eswitch.Wire
		return err
	}
	a.settle()
	return nil
}

// reseat tells the embedded switch what is decided about an adapter's functions.
func (a *adapter) reseat() error {
	s := a.port.embedded.Switch
	if s == nil || a.at == eswitch.Wire {
		return nil
	}
	f := a.seating()
	err := s.Set(a.at, f)
	if err != nil && !a.virtual() { // others may have the MAC in other VLANs
		f.VLAN = eswitch.VLAN{Untagged: a.cfg.VLAN == 0}
		if a.cfg.VLAN != 0 {
			f.VLAN.Trunk.Add(a.cfg.VLAN)
		}
		err = s.Set(a.at, f)
	}
	if err != nil {
		return command.Errorf(command.Invalid, "MAC, VLAN: %v", err)
	}
	a.subscribe()
	return nil
}

// seating returns what is decided about an adapter's functions. What they do not want of groups they leave out themselves, if they may
// have all.
func (a *adapter) seating() eswitch.Function {
	f := eswitch.Function{MACs: []eth.MAC{a.mac}, Link: eswitch.LinkUp, AllGroups: true, Promiscuous: a.promiscuous}
	if !a.virtual() {
		f.VLAN = eswitch.AnyVLAN()
		for i, w := range a.ceded {
			f.VLAN.Trunk[i] &^= w
		}
		return f
	}
	v := a.cfg.Virtual
	f.Trusted, f.Blocked = v.Trust, v.Blocked
	if c := a.cfg.Ethernet; c != nil { // the socket of a machine's card does not say which groups that has joined
		_, f.Unlisted = c.Host.(hostside.Attended)
	}
	if v.Link == LinkDown {
		f.Link = eswitch.LinkDown
	}
	if v.VSID != 0 { // it is in no VLAN: the overlay has its frames
		return f
	}
	if a.cfg.VLAN != 0 {
		f.VLAN.Trunk.Add(a.cfg.VLAN)
		return f
	}
	f.VLAN.Untagged, f.VLAN.Trunk = true, v.VLANs
	for i, w := range a.ceded {
		f.VLAN.Trunk[i] &^= w
	}
	return f
}

// subscribe tells the embedded switch of which groups an adapter's functions get the frames.
func (a *adapter) subscribe() {
	s := a.port.embedded.Switch
	if s == nil || a.at == eswitch.Wire {
		return
	}
	var list []eth.MAC
	for g := range a.groups {
		if m, ok := eth.MulticastMAC(g); ok {
			list = append(list, m)
		}
	}
	if a.nic.on() {
		list = append(list, a.nic.joined...)
	}
	if err := s.Subscribe(a.at, list); err != nil {
		a.host.log.Warn("the embedded switch does not know a function's groups", "adapter", a.name, "cause", err)
	}
}

// settle tells an adapter's stations which port of the switch they are at.
func (a *adapter) settle() {
	if a.station != nil {
		a.station.At = a.at
	}
	if a.raw.station != nil {
		a.raw.station.At = a.at
	}
	if a.nic.on() {
		a.nic.station.At, a.nic.station.Tag = a.at, a.tag()
	}
}

// priorityShift is where a tag has its priority (IEEE 802.1Q, 9.6).
const priorityShift = 13

// tag is what the frames of an adapter's Ethernet function get, which knows nothing of its VLAN.
func (a *adapter) tag() uint16 {
	if a.virtual() {
		return uint16(a.cfg.priority)<<priorityShift | a.cfg.VLAN
	}
	return 0
}

// discharge takes an adapter's port at the switch away, and the switch with the last virtual function.
func (p *portLoop) discharge(a *adapter) {
	if p.embedded.Switch == nil {
		return
	}
	p.tellSpoofed()
	if a.at != eswitch.Wire {
		p.expel(a)
		p.embedded.Remove(a.at)
		a.at = eswitch.Wire
	}
	p.reclaim(a)
	if !slices.ContainsFunc(p.functions, func(o *adapter) bool { return o != a && o.virtual() }) {
		p.unembed()
	}
}

func (p *portLoop) unembed() {
	p.embedded.Switch = nil
	for _, o := range p.functions {
		o.at = eswitch.Wire
		o.settle()
		o.links.All()[0].Wire.Embed(nil)
	}
}

// tendSwitch follows which functions want to see all, and tells of spoofed frames.
func (p *portLoop) tendSwitch(now clock.Time) {
	if p.embedded.Switch == nil {
		return
	}
	for _, a := range p.functions {
		if want := a.nic.on() && a.nic.f.Filter().Mode()&filter.Promiscuous != 0; want != a.promiscuous {
			a.promiscuous = want
			_ = a.reseat() // nothing else has changed
		}
	}
	if now >= p.embedded.due {
		p.embedded.due = now.Add(spoofInterval)
		p.tellSpoofed()
	}
}

func (p *portLoop) tellSpoofed() {
	e := &p.embedded
	e.reports = e.Reports(e.reports[:0])
	for _, r := range e.reports {
		i := slices.IndexFunc(p.functions, func(a *adapter) bool { return a.at == r.Port })
		if i < 0 || p.host.cfg.Spoofed == nil {
			continue
		}
		a := p.functions[i]
		if a.cfg.ofTenant {
			a = p.host.adapters[a.cfg.virtualOf]
		}
		p.host.cfg.Spoofed(Spoofed{Owner: a.cfg.virtualOf, Function: a.name, Number: a.number, Report: r})
	}
}

// SetSwitch says how the embedded switch of an adapter's port works from now on. Errors are *command.Error.
func (h *Host) SetSwitch(index uint32, cfg eswitch.Config) error {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	a.port.embedded.cfg = cfg
	if s := a.port.embedded.Switch; s != nil {
		s.Configure(cfg)
	}
	return nil
}
