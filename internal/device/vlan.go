package device

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/port"
)

// VLANConfig describes a VLAN interface: functions at the port of an adapter, with its MAC, whose frames are in a VLAN. They are the
// host's, as the adapter's own: every program sees them that sees adapters.
type VLANConfig struct {
	Owner uint32 // index of the adapter
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
	noRDMA := false
	if o, err := h.adapter(v.Owner); err == nil {
		f.MAC, noRDMA = o.mac, o.cfg.NoRDMA
	}
	h.unlock()
	cfg, err := h.functionConfig(f)
	if err != nil {
		return 0, err
	}
	cfg.ofHost, cfg.priority, cfg.NoRawPackets, cfg.NoRDMA = true, v.Priority, true, noRDMA
	return h.addFunction(cfg, Virtual{})
}

// tenants reports whether the adapter is a virtual function that is somebody's alone, and not the host's.
func (a *adapter) tenants() bool { return a.virtual() && !a.cfg.ofHost }

// VLANs returns the VLAN interfaces at the port of an adapter.
func (h *Host) VLANs(owner uint32) (list []VLANStatus) {
	h.lock()
	defer h.unlock()
	h.foldAll()
	for _, a := range h.adapters {
		if a.removed || !a.cfg.ofHost || a.cfg.virtualOf != owner {
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
	if !a.cfg.ofHost {
		return nil
	}
	o := p.host.adapters[a.cfg.virtualOf]
	o.ceded.Add(a.cfg.VLAN)
	return o.reseat()
}

// reclaim gives an adapter the frames of a VLAN interface that is gone. Nobody else has its MAC there.
func (p *portLoop) reclaim(a *adapter) {
	if !a.cfg.ofHost {
		return
	}
	o := p.host.adapters[a.cfg.virtualOf]
	o.ceded.Remove(a.cfg.VLAN)
	if err := o.reseat(); err != nil {
		p.host.log.Warn("the embedded switch does not give an adapter a VLAN back", "adapter", o.name, "vlan", a.cfg.VLAN, "cause", err)
	}
}
