package device

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/port"
)

// VLANConfig describes a VLAN interface: functions at the port of an adapter, with its MAC, whose frames are in a VLAN. They are the
// host's, as the adapter's own: every program sees them that sees adapters. Those of a virtual function have that one's MAC, link and
// share of the wire, and its programs see them, which nobody else does.
type VLANConfig struct {
	Owner uint32 // index of the adapter or virtual function
	Name  string
	Addr  netip.Prefix
	VLAN  uint16 // 1 to 4094; neither the adapter nor another VLAN interface of its is in it
	// Priority is that of the host's frames that have none, and of RDMA packets that neither their program nor a rule of the port gives
	// one, 0 to 7 (IEEE 802.1p).
	Priority uint8
	// Ethernet is its Ethernet function, which knows nothing of the VLAN; nil: it has none.
	Ethernet *EthernetConfig
}

// VLANStatus is the state of a VLAN interface.
type VLANStatus struct {
	AdapterStatus
	VLAN     uint16
	Priority uint8
	Frames   port.Carried // of all its queue pairs, and of its host
}

// AddVLAN adds a VLAN interface at the port of an adapter, enabled, and returns its index. While a port has one, the adapter itself gets
// and sends the frames of the VLANs that no interface is in. Errors are those of AddFunction; RemoveFunction removes it.
func (h *Host) AddVLAN(v VLANConfig) (uint32, error) {
	f := FunctionConfig{Owner: v.Owner, Name: v.Name, Addr: v.Addr, VLAN: v.VLAN, Ethernet: v.Ethernet}
	h.lock()
	o, err := h.adapter(v.Owner)
	var of Virtual
	noRDMA := false
	if err == nil {
		f.MAC, noRDMA = o.mac, o.cfg.NoRDMA
		of, err = o.handedDown()
	}
	h.unlock()
	if err != nil {
		return 0, err
	}
	f.Virtual.NoRDMA = of.NoRDMA
	cfg, err := h.functionConfig(f)
	if err != nil {
		return 0, err
	}
	cfg.ofHost, cfg.ofTenant = !o.virtual(), o.virtual()
	cfg.priority, cfg.NoRawPackets, cfg.NoRDMA = v.Priority, true, noRDMA
	return h.addFunction(cfg, of)
}

// handedDown is what is decided about a VLAN interface of the adapter: what is about its owner, if that is a virtual function. The error
// says why it has none.
func (a *adapter) handedDown() (of Virtual, err error) {
	switch {
	case !a.virtual():
		return of, nil
	case a.removed || a.vlanInterface():
		return of, command.Errorf(command.Invalid, "Owner: %q is a VLAN interface itself, or gone", a.name)
	case a.cfg.VLAN != 0: // the embedded switch drops what it tags itself
		return of, command.Errorf(command.Unsupported, "Owner: the host puts the frames of %q in VLAN %d, and it may have no tags of its own",
			a.name, a.cfg.VLAN)
	case a.subnet() != 0: // RFC 7348, 6.1; RFC 7637, 3.3
		return of, command.Errorf(command.Unsupported, "Owner: %q is in virtual subnet %d, where frames have no tags", a.name, a.subnet())
	}
	v := a.cfg.Virtual
	return Virtual{Share: v.Share, Link: v.Link, Trust: v.Trust, NoRDMA: v.NoRDMA, Blocked: v.Blocked}, nil
}

// tenants reports whether the adapter is a virtual function that is somebody's alone, and not the host's.
func (a *adapter) tenants() bool { return a.virtual() && !a.cfg.ofHost }

// vlanInterface reports whether the adapter is one.
func (a *adapter) vlanInterface() bool { return a.cfg.ofHost || a.cfg.ofTenant }

// interfaces returns the VLAN interfaces of an adapter or virtual function.
func (a *adapter) interfaces() (list []*adapter) {
	for _, o := range a.port.functions {
		if o.vlanInterface() && o.cfg.virtualOf == a.index {
			list = append(list, o)
		}
	}
	return list
}

// purse is the station whose share of the wire the adapter's stations have.
func (a *adapter) purse() *port.Station {
	if a.cfg.ofTenant {
		return a.host.adapters[a.cfg.virtualOf].station
	}
	return a.station
}

// rejoin lets the stations of the adapter's VLAN interfaces have its share, once its own station is another one.
func (a *adapter) rejoin() {
	if !a.virtual() {
		return
	}
	for _, o := range a.interfaces() {
		o.station.Join(a.station)
		if o.nic.on() {
			o.nic.station.Join(a.station)
		}
	}
}

// VLANs returns the VLAN interfaces of an adapter and of its virtual functions, or those of a virtual function.
func (h *Host) VLANs(owner uint32) (list []VLANStatus) {
	h.lock()
	defer h.unlock()
	h.foldAll()
	for _, a := range h.adapters {
		if a.removed || !a.vlanInterface() {
			continue
		}
		if of := h.adapters[a.cfg.virtualOf]; of.index != owner && (!of.virtual() || of.cfg.virtualOf != owner) {
			continue
		}
		s := VLANStatus{AdapterStatus: a.snapshot(), VLAN: a.cfg.VLAN, Priority: a.cfg.priority, Frames: a.carriedAll()}
		s.QPs = a.qpStatus()
		list = append(list, s)
	}
	return list
}

// carriedAll is what all functions of the adapter have sent and received.
func (a *adapter) carriedAll() port.Carried {
	return port.Carried{Wire: a.carried.rdma.Wire.Plus(a.carried.other.Wire), Inside: a.carried.rdma.Inside.Plus(a.carried.other.Inside)}
}

// cede leaves the frames of a VLAN interface that is about to come to it, which have the MAC of the adapter whose it is.
func (p *portLoop) cede(a *adapter) error {
	if !a.vlanInterface() {
		return nil
	}
	o := p.host.adapters[a.cfg.virtualOf]
	o.ceded.Add(a.cfg.VLAN)
	return o.reseat()
}

// reclaim gives an adapter the frames of a VLAN interface that is gone. Nobody else has its MAC there.
func (p *portLoop) reclaim(a *adapter) {
	if !a.vlanInterface() {
		return
	}
	o := p.host.adapters[a.cfg.virtualOf]
	o.ceded.Remove(a.cfg.VLAN)
	if err := o.reseat(); err != nil {
		p.host.log.Warn("the embedded switch does not give an adapter a VLAN back", "adapter", o.name, "vlan", a.cfg.VLAN, "cause", err)
	}
}
