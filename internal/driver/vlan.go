package driver

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/hostside"
	"github.com/softvpi/softvpi/internal/registry"
)

// VLAN interfaces (vlan_config; WinOF 5.50, 4.1.6) are functions of their own at the port of an adapter, with its MAC, in a VLAN: an RDMA
// function, and one for a network interface of the host. Those of a team are at its carrier's port; those of a virtual function have its
// MAC and are for its programs, and their network interface is made where its own is. They are kept in the registry, come with their
// adapter or function when it is enabled, and go when it is disabled.

// vlanInterface is such an interface. The holder of changes has it.
type vlanInterface struct {
	registry.VLAN
	live  bool
	index uint32       // of the device's function, while it is live
	at    int          // the adapter at whose port that is, likewise
	end   hostside.End // its network interface, which outlives it; nil: none is open
	space string       // the network namespace in which that was opened, as of hostPlace
	vf    bool         // it was a virtual function's when it was live last
}

// recallVLANs makes the VLAN interfaces again that are kept. They start with their adapters.
func (d *Driver) recallVLANs() {
	for _, kept := range d.registry.VLANs() {
		v := &vlanInterface{VLAN: kept}
		if err := d.checkVLAN(&kept, v); err != nil {
			d.log.Warn("a VLAN interface that was made before is not there", "interface", kept.Name, "cause", err)
			continue
		}
		d.vlans = append(d.vlans, v)
	}
}

// carrierOf returns the adapter at whose port the VLAN interfaces of an owner are; -1: there is none now.
func (d *Driver) carrierOf(owner string) int {
	for _, t := range d.Roster.All() {
		if t.GUID != owner {
			continue
		}
		return d.Roster.Carrier(t)
	}
	if f := d.vlanFunction(owner); f != nil {
		return int(f.cfg.Owner)
	}
	return slices.IndexFunc(d.running, func(r *running) bool { return r.GUID() == owner })
}

// vlanFunction returns the virtual function that is an owner of VLAN interfaces; nil: none is.
func (d *Driver) vlanFunction(owner string) *virtualFunction {
	for _, f := range d.functions.list {
		if registry.FunctionGUID(f.cfg.Name) == owner {
			return f
		}
	}
	return nil
}

// vlansOf returns the VLAN interfaces of an owner.
func (d *Driver) vlansOf(owner string) (list []*vlanInterface) {
	for _, v := range d.vlans {
		if v.Owner == owner {
			list = append(list, v)
		}
	}
	return list
}

// startVLANs starts the VLAN interfaces of an adapter that was enabled. The caller holds changes.
func (d *Driver) startVLANs(i int) {
	for _, v := range d.vlans {
		if d.carrierOf(v.Owner) == i && d.vlanFunction(v.Owner) == nil {
			d.tryVLAN(v, i)
		}
		if v.vf && d.vlanFunction(v.Owner) == nil { // the keys have that function no more
			d.closeVLAN(v)
		}
	}
}

// startFunctionVLANs starts those of a virtual function that was started.
func (d *Driver) startFunctionVLANs(f *virtualFunction) {
	for _, v := range d.vlansOf(registry.FunctionGUID(f.cfg.Name)) {
		d.tryVLAN(v, int(f.cfg.Owner))
	}
}

func (d *Driver) tryVLAN(v *vlanInterface, i int) {
	if v.live {
		return
	}
	if err := d.startVLAN(v); err != nil {
		d.log.Warn("a VLAN interface does not start", "interface", v.Name, "adapter", d.running[i].Name, "cause", err)
	}
}

// stopFunctionVLANs stops those of a virtual function that is about to be stopped.
func (d *Driver) stopFunctionVLANs(f *virtualFunction) {
	for _, v := range d.vlansOf(registry.FunctionGUID(f.cfg.Name)) {
		d.stopVLAN(v)
	}
}

// dropFunctionVLANs removes those of a virtual function that was removed.
func (d *Driver) dropFunctionVLANs(f *virtualFunction) error {
	var forget []registry.Change
	for _, v := range d.vlansOf(registry.FunctionGUID(f.cfg.Name)) {
		d.stopVLAN(v)
		d.closeVLAN(v)
		forget = append(forget, v.Forget())
		d.vlans = slices.DeleteFunc(d.vlans, func(o *vlanInterface) bool { return o == v })
	}
	return d.registry.Apply(forget...)
}

// stopVLANs stops those at the port of an adapter that is about to be disabled.
func (d *Driver) stopVLANs(i int) {
	for _, v := range d.vlans {
		if v.live && v.at == i {
			d.stopVLAN(v)
		}
	}
}

// startVLAN adds a VLAN interface to the device, at the port of an adapter that is enabled.
func (d *Driver) startVLAN(v *vlanInterface) error {
	i, f := d.carrierOf(v.Owner), d.vlanFunction(v.Owner)
	owner, mac, space := uint32(i), [6]byte{}, ""
	if f != nil {
		owner, mac, space = f.index, f.cfg.MAC, f.host.space
	} else {
		mac = d.host.Overview().Adapters[i].MAC
	}
	cfg := device.VLANConfig{Owner: owner, Name: d.vlanName(i, v), VLAN: uint16(v.ID), Priority: uint8(v.Priority),
		Addr: vlanAddress(mac, v)}
	if v.end != nil && v.space != space {
		d.closeVLAN(v)
	}
	if v.TAP != "" && v.end == nil {
		end, err := hostPlace{kind: config.HostTAP, at: v.TAP, space: space}.open()
		if err != nil {
			return err
		}
		v.end, v.space = end, space
	}
	if v.end != nil {
		cfg.Ethernet = &device.EthernetConfig{Host: v.end, Kept: true, Config: d.ethernetConfig(i)}
	}
	index, err := d.host.AddVLAN(cfg)
	if err != nil {
		return wrongFunction(err)
	}
	v.live, v.index, v.at, v.vf = true, index, i, f != nil
	return nil
}

// stopVLAN takes a VLAN interface from the device. Its network interface stays, without a carrier.
func (d *Driver) stopVLAN(v *vlanInterface) {
	if !v.live {
		return
	}
	v.live = false
	if err := d.host.RemoveFunction(v.index); err != nil {
		d.log.Warn("a VLAN interface does not end in order", "interface", v.Name, "cause", err)
	}
}

// closeVLAN gives the network interface of one that was stopped back.
func (d *Driver) closeVLAN(v *vlanInterface) {
	if v.end == nil {
		return
	}
	if err := v.end.Close(); err != nil {
		d.log.Warn("the network interface of a VLAN interface is not given back", "interface", v.TAP, "cause", err)
	}
	v.end = nil
}

// closeVLANs gives all back, once the adapters are closed.
func (d *Driver) closeVLANs() {
	d.changes.Lock()
	defer d.changes.Unlock()
	for _, v := range d.vlans {
		d.closeVLAN(v)
	}
}

// vlanName is what programs call a VLAN interface at the port of adapter i.
func (d *Driver) vlanName(i int, v *vlanInterface) string {
	if f := d.vlanFunction(v.Owner); f != nil {
		return f.cfg.Name + "." + v.Name
	}
	return d.running[i].Name + "." + v.Name
}

// vlanAddress returns the address of a VLAN interface's RDMA function. The link-local one that follows from a MAC has the VLAN in the place
// of ff:fe, as addresses of interfaces that share a MAC have a number there: all of an adapter have its MAC.
func vlanAddress(mac [6]byte, v *vlanInterface) netip.Prefix {
	if p, err := netip.ParsePrefix(v.Address); err == nil {
		return p
	}
	a := linkLocal(mac).Addr().As16()
	a[11], a[12] = byte(v.ID>>8), byte(v.ID)
	return netip.PrefixFrom(netip.AddrFrom16(a), 64)
}

// VLANs implements apiserver.VLANSource.
func (d *Driver) VLANs() []api.VLANStatus {
	d.changes.Lock()
	defer d.changes.Unlock()
	list := []api.VLANStatus{}
	for _, v := range d.vlans {
		list = append(list, d.describeVLAN(v))
	}
	return list
}

// vlanStatus returns the VLAN interfaces at the port of adapter i, those of its virtual functions too. The caller holds changes.
func (d *Driver) vlanStatus(i int) (list []api.VLANStatus) {
	for _, v := range d.vlans {
		if d.carrierOf(v.Owner) == i {
			list = append(list, d.describeVLAN(v))
		}
	}
	return list
}

// describeVLAN returns a VLAN interface for the management interface.
func (d *Driver) describeVLAN(v *vlanInterface) api.VLANStatus {
	s := api.VLANStatus{Name: v.Name, GUID: v.GUID, OwnerGUID: v.Owner, ID: int(v.ID), Priority: int(v.Priority), TAP: v.TAP,
		Address: v.Address, Counters: map[string]uint64{}}
	for _, t := range d.Roster.All() {
		if t.GUID == v.Owner {
			s.Owner = t.Name
		}
	}
	i := d.carrierOf(v.Owner)
	if i < 0 {
		return s
	}
	if f := d.vlanFunction(v.Owner); f != nil {
		s.Owner, s.Function = f.cfg.Name, f.cfg.Name
	}
	if s.Adapter, s.Device = d.running[i].Name, d.vlanName(i, v); s.Owner == "" {
		s.Owner = s.Adapter
	}
	for _, o := range d.host.VLANs(uint32(i)) {
		if !v.live || o.Info.Index != v.index {
			continue
		}
		s.Address, s.MAC, s.Up, s.QPs = vlanAddress(o.MAC, v).String(), net.HardwareAddr(o.MAC[:]).String(), o.Up, o.Objects.QP
		w, in := o.Frames.Wire, o.Frames.Inside
		s.Counters = map[string]uint64{
			"sent_frames": w.SentFrames + in.SentFrames, "sent_bytes": w.SentBytes + in.SentBytes,
			"received_frames": w.ReceivedFrames + in.ReceivedFrames, "received_bytes": w.ReceivedBytes + in.ReceivedBytes,
		}
		for _, g := range o.GIDs {
			s.GIDs = append(s.GIDs, api.GIDStatus{Index: g.Index, RoCE: pick(roceNames[:], g.RoCE), GID: netip.AddrFrom16(g.GID)})
		}
		for _, c := range o.Counters {
			s.Counters[counterName(c)] = c.Value
		}
	}
	return s
}

// vlanNamed finds a VLAN interface by its owner and name, in capitals or not.
func (d *Driver) vlanNamed(owner, name string) (*vlanInterface, error) {
	guid, err := d.ownerNamed(owner)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, v := range d.vlansOf(guid) {
		if strings.EqualFold(v.Name, name) {
			return v, nil
		}
		names = append(names, v.Name)
	}
	return nil, unknownVLAN(name, names)
}
