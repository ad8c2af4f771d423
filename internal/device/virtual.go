package device

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/port"
)

// LinkPolicy is how the link of a virtual function stands.
type LinkPolicy uint8

// A link follows the port's wire, is up whatever that does, so that functions of the port reach each other, or is down.
const (
	LinkAuto LinkPolicy = iota
	LinkUp
	LinkDown
)

// Virtual is what an administrator decides about a virtual function, at any time.
type Virtual struct {
	Share port.Share // of the port's wire
	Link  LinkPolicy
	// Trust lets its programs have raw packet queue pairs, with flows for frames to its MAC and to groups.
	Trust bool
	// VLANs are those whose tags they may use, of a function that is in no VLAN itself (guest tagging).
	VLANs bridge.VLANs
	// NoRDMA offers its programs no RDMA, as AdapterConfig.NoRDMA (Set-VMNetworkAdapterRdma -RdmaWeight 0; WinOF-2 24.4, Configuring Guest
	// RDMA). Programs that have objects keep them: whoever changes it makes another function.
	NoRDMA bool
	// Blocked keeps all frames from it and for it, while its link is up: a filter platform without rules is at its port of a virtual switch
	// (WinOF-2 24.4, Using PacketDirect for VM). PacketDirect lets its programs have raw packet queue pairs without trust.
	Blocked, PacketDirect bool
	// VSID is its virtual subnet (Set-VMNetworkAdapter -VirtualSubnetId): its frames go to others of that alone, see Host.SetOverlay; 0:
	// none. Whoever changes it makes another function.
	VSID uint32
	// PKeys is what it has of the partitions of an InfiniBand port.
	PKeys Partitions
}

// FunctionConfig describes a virtual function. What it does not say is as with the adapter whose port it shares.
type FunctionConfig struct {
	Owner   uint32 // index of that adapter
	Name    string
	Addr    netip.Prefix
	MAC     [6]byte
	VLAN    uint16 // that its frames are in, which its programs and its host do not see; 0: none
	Virtual Virtual
	// Aliases are its GUIDs at an InfiniBand port, and GUID the one that it calls itself until it has the first of them.
	Aliases AliasGUIDs
	GUID    uint64
	// ByLID gives it a virtual port of the InfiniBand port, with a LID of its own, whose GUID is GUID; it has no aliases then.
	ByLID bool
	// Ethernet is its Ethernet function; nil: it has none.
	Ethernet *EthernetConfig
}

// FunctionStatus is the state of a virtual function.
type FunctionStatus struct {
	AdapterStatus
	Config FunctionConfig
	// Number is that of the virtual function at its port, from 0 on.
	Number int
	// Fabric is what it has of an InfiniBand port; nil: the port is Ethernet's.
	Fabric *FabricStatus
	// Switch are the counters of its port at the embedded switch, and Forged RoCE packets that it tried to send with another's GID.
	Switch   eswitch.Counters
	Forged   uint64
	Frames   port.Carried // of all its queue pairs
	Programs int
}

// virtual reports whether the adapter is a virtual function.
func (a *adapter) virtual() bool { return a.cfg.Virtual != nil }

// AddFunction adds a virtual function at the port of an adapter, enabled, and returns its index. Programs see it if they are its own
// (ClientConfig.Function). Errors are those of AddAdapter.
func (h *Host) AddFunction(f FunctionConfig) (uint32, error) {
	h.lock()
	o, err := h.adapter(f.Owner)
	if err == nil && o.virtual() {
		err = command.Errorf(command.Invalid, "Owner: %q is a virtual function itself", o.name)
	}
	h.unlock()
	if err != nil {
		return 0, err
	}
	cfg, err := h.functionConfig(f)
	if err != nil {
		return 0, err
	}
	return h.addFunction(cfg, f.Virtual)
}

func (h *Host) addFunction(cfg AdapterConfig, v Virtual) (uint32, error) {
	index, err := h.AddAdapter(cfg)
	if err != nil {
		return 0, err
	}
	if err := h.SetFunction(index, v); err != nil {
		return 0, errors.Join(err, h.RemoveFunction(index))
	}
	return index, nil
}

// functionConfig returns the configuration of a virtual function as an adapter.
func (h *Host) functionConfig(f FunctionConfig) (AdapterConfig, error) {
	h.lock()
	defer h.unlock()
	o, err := h.adapter(f.Owner)
	switch {
	case err != nil:
		return AdapterConfig{}, err
	case o.ib != nil && (f.VLAN != 0 || f.Ethernet != nil || f.Virtual.VSID != 0):
		return AdapterConfig{}, command.Errorf(command.Unsupported, "VLAN, Ethernet and VSID: adapter %q is an InfiniBand port, which has partitions",
			o.name)
	case o.ib != nil:
	case o.cfg.Link == nil || o.cfg.Link.Capabilities().Stations == nil:
		return AdapterConfig{}, command.Errorf(command.Unsupported, "adapter %q has no wire of whole Ethernet frames for several functions", o.name)
	case f.MAC[0]&1 != 0:
		return AdapterConfig{}, command.Errorf(command.Invalid, "MAC is %v, want the address of one station", net.HardwareAddr(f.MAC[:]))
	}
	cfg := o.cfg
	owner := f.Owner
	if cfg.ShareWith != nil {
		owner = *cfg.ShareWith
	}
	cfg.Name, cfg.Addr, cfg.MAC, cfg.VLAN, cfg.GUID = f.Name, f.Addr.Addr(), f.MAC, f.VLAN, 0
	cfg.Addrs, cfg.Networks, cfg.FollowInterface, cfg.Device, cfg.Port = nil, []netip.Prefix{f.Addr}, false, "", 1
	cfg.Link, cfg.Ethernet, cfg.ShareWith, cfg.Disabled, cfg.NoRawPackets, cfg.NoRDMA = nil, f.Ethernet, &owner, false, false, false
	cfg.aliases, cfg.byLID = f.Aliases, f.ByLID && o.ib != nil
	if o.ib != nil {
		cfg.MAC, cfg.GUID = [6]byte{}, f.GUID
	}
	cfg.Path, cfg.virtualOf = o.path, f.Owner
	cfg.Virtual = &Virtual{VSID: f.Virtual.VSID, NoRDMA: f.Virtual.NoRDMA, PKeys: f.Virtual.PKeys}
	return cfg, nil
}

// function returns the virtual function of that index. The caller holds the loop lock.
func (h *Host) function(index uint32) (*adapter, error) {
	a, err := h.adapter(index)
	if err == nil && (!a.virtual() || a.removed) {
		err = command.Errorf(command.NotFound, "adapter %d is no virtual function", index)
	}
	return a, err
}

// SetFunction changes what is decided about a virtual function, at once: all or nothing. Its connections, and those of others, go on.
func (h *Host) SetFunction(index uint32, v Virtual) error {
	h.lock()
	defer h.finish()
	a, err := h.function(index)
	if err != nil {
		return err
	}
	if err := a.decide(v); err != nil {
		return err
	}
	if a.vlanInterface() {
		return nil
	}
	for _, o := range a.interfaces() {
		of, e := a.handedDown()
		if e == nil {
			e = o.decide(of)
		}
		err = errors.Join(err, e)
	}
	return err
}

// decide changes what is decided about a virtual function, all or nothing.
func (a *adapter) decide(v Virtual) error {
	before := a.cfg.Virtual
	v.VSID = before.VSID
	a.cfg.Virtual = &v
	if err := a.reseat(); err != nil { // the switch has it as it was
		a.cfg.Virtual = before
		return err
	}
	if err := a.port.admit(a); err != nil {
		a.cfg.Virtual = before
		return errors.Join(err, a.reseat(), a.port.admit(a))
	}
	a.reshare()
	a.station.SetShare(a.host.now(), v.Share)
	a.switchStation(a.enabled)
	a.guardRaw()
	a.followWire()
	a.reroute()
	return nil
}

// RemoveFunction removes a virtual function. Its programs are told that their device is gone; others go on.
func (h *Host) RemoveFunction(index uint32) error {
	h.lock()
	a, err := h.function(index)
	if err == nil && !a.vlanInterface() && len(a.interfaces()) > 0 {
		err = command.Errorf(command.Busy, "%q has VLAN interfaces, which go before", a.name)
	}
	h.unlock()
	if err == nil {
		err = h.SetAdapterState(index, false)
	}
	if err != nil {
		return err
	}
	h.lock()
	a, err = h.function(index)
	if err == nil {
		err = h.withdraw(a)
	}
	h.finish()
	h.evict()
	return err
}

// stopFunctions disables the virtual functions at the port of an adapter if that is broken, so that it can be mended, and returns
// them.
func (h *Host) stopFunctions(index uint32) (stopped []uint32) {
	h.lock()
	if a, err := h.adapter(index); err == nil && a.port.broken {
		for _, o := range a.port.functions {
			if o.virtual() && o.enabled {
				stopped = append(stopped, o.index)
			}
		}
	}
	h.unlock()
	for _, i := range stopped {
		_ = h.SetAdapterState(i, false) // ends what can be ended
	}
	return stopped
}

// withdraw takes a disabled virtual function from its port, and its index from the host.
func (h *Host) withdraw(a *adapter) error {
	a.port.dismiss(a)
	err := a.close()
	a.nic = nil
	a.setGIDs(nil)
	a.removed, a.name = true, ""
	a.cfg.Link, a.cfg.Addr = nil, netip.Addr{}
	a.cut()
	for n := len(h.adapters); n > 0 && h.adapters[n-1].removed; n-- {
		h.adapters = h.adapters[:n-1]
	}
	h.watched++
	return err
}

// freeIndex returns the index of a new adapter: that of a virtual function that was removed, else the next one.
func (h *Host) freeIndex() int {
	if i := slices.IndexFunc(h.adapters, func(a *adapter) bool { return a.removed }); i >= 0 {
		return i
	}
	return len(h.adapters)
}

// Functions returns the virtual functions at the port of an adapter.
func (h *Host) Functions(owner uint32) (list []FunctionStatus) {
	h.lock()
	defer h.unlock()
	h.foldAll()
	for _, a := range h.adapters {
		if !a.tenants() || a.cfg.ofTenant || a.removed || a.cfg.virtualOf != owner {
			continue
		}
		f := FunctionStatus{AdapterStatus: a.snapshot(), Number: a.number, Forged: a.guard.Forged,
			Config: FunctionConfig{Owner: owner, Name: a.name, Addr: a.cfg.Networks[0], MAC: a.mac, VLAN: a.cfg.VLAN,
				Virtual: *a.cfg.Virtual},
			Frames: a.carriedAll(), Fabric: a.fabricStatus()}
		f.QPs = a.qpStatus()
		if s := a.port.embedded.Switch; s != nil && a.at != eswitch.Wire {
			f.Switch = *s.Counters(a.at)
		}
		for _, c := range h.clients {
			if c.only == a && !c.cfg.OfDriver {
				f.Programs++
			}
		}
		list = append(list, f)
	}
	return list
}

// FunctionNumber returns the number of a virtual function at its port, from 0 on; -1: there is no such function.
func (h *Host) FunctionNumber(index uint32) int {
	h.lock()
	defer h.unlock()
	a, err := h.function(index)
	if err != nil {
		return -1
	}
	return a.number
}

// within reports whether what a virtual function sends may reach another adapter otherwise than by packets: both are in one VLAN of
// one port, and in one virtual subnet or none. Adapters that are no virtual functions are on one host, whose user they are for.
func (a *adapter) within(from *adapter) bool {
	if !a.virtual() && !from.virtual() {
		return true
	}
	return a.port == from.port && a.cfg.VLAN == from.cfg.VLAN && a.subnet() == from.subnet()
}

// policed returns the state of the wire as a function's policy makes it.
func (a *adapter) policed(s link.State) link.State {
	if a.virtual() && a.ib == nil {
		switch a.cfg.Virtual.Link {
		case LinkUp:
			s.Up = true
		case LinkDown:
			s.Up = false
		}
	}
	return s
}

// switchStation turns the station of an adapter's RDMA function on or off. It stays off for a virtual function without RDMA that has a
// host: RoCE to its MAC is then the host's, which may have RDMA of its own, as a virtual machine with Soft-RoCE.
func (a *adapter) switchStation(on bool) {
	a.station.Switch(on && !(a.virtual() && a.cfg.Virtual.NoRDMA && a.nic != nil))
}

// switchedDown reports whether it is an administrator who keeps a function's link down.
func (a *adapter) switchedDown() bool { return a.virtual() && a.cfg.Virtual.Link == LinkDown }

// slowed reports whether a function may send only so much, so that its packets have to be seen.
func (a *adapter) slowed() bool { return a.virtual() && a.cfg.Virtual.Share.Most != 0 }

// blocked reports whether no frame passes the port of a function at the embedded switch.
func (a *adapter) blocked() bool { return a.virtual() && a.cfg.Virtual.Blocked }

// checkVirtualRaw reports why the programs of a virtual function have no raw packet queue pairs.
func (a *adapter) checkVirtualRaw() error {
	switch {
	case !a.virtual():
		return nil
	case a.subnet() != 0:
		return command.Errorf(command.Unsupported, "%q is in a virtual subnet, of which raw packets know nothing", a.name)
	case !a.cfg.Virtual.Trust && !a.cfg.Virtual.PacketDirect:
		return command.Errorf(command.Access, "raw packet queue pairs are for virtual functions that are trusted or at a virtual switch with PacketDirect, "+
			"and %q is neither", a.name)
	case a.cfg.VLAN != 0:
		return command.Errorf(command.Unsupported, "%q is in VLAN %d, whose tags raw packet queue pairs would see", a.name, a.cfg.VLAN)
	}
	return nil
}

// checkVirtualFlow refuses a virtual function the frames of others.
func (a *adapter) checkVirtualFlow(r *command.CreateFlow) error {
	if !a.virtual() || r.Type == command.FlowMulticastDefault {
		return nil
	}
	own := r.Value.Dst == a.mac || r.Value.Dst[0]&1 != 0
	if r.Type == command.FlowNormal && own && r.Mask.Dst == [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff} {
		return nil
	}
	return command.Errorf(command.Access, "Type, Value and Mask: a virtual function has flows for its MAC, %v, and for groups",
		net.HardwareAddr(a.mac[:]))
}

// guardRaw makes raw packet queue pairs of a virtual function check sources, always (WinOF-2 24.4, VF Spoof Protection).
func (a *adapter) guardRaw() {
	if !a.virtual() || a.raw.f == nil {
		return
	}
	a.guard.UDPPort, a.guard.Owns = a.cfg.UDPPort, a.gids.Has
	a.raw.f.SetGuard(&a.guard)
}
