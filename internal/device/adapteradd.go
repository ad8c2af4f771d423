package device

import (
	"cmp"
	"net/netip"

	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/function/rdma"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/ib"
)

// AddAdapter adds an adapter and returns its index. Errors are *command.Error (InUse if the address is
// taken, AddrNotAvailable, Invalid naming the field).
func (h *Host) AddAdapter(cfg AdapterConfig) (uint32, error) {
	if err := cfg.complete(); err != nil {
		return 0, err
	}
	cfg.namespace = gid.Namespace()
	more, mac, _ := gid.Interface(cfg.Addr) // slow: not while holding the loop lock
	wire, known := h.wireOf(&cfg)
	h.lock()
	defer h.finish()
	if h.closed {
		return 0, command.Errorf(command.Removed, "the host is closed")
	}
	index := uint32(h.freeIndex())
	if cfg.Name == "" {
		cfg.Name = "Ethernet " + itoa(index+1)
		if cfg.RoCE == InfiniBand {
			cfg.Name = "InfiniBand " + itoa(index+1)
		}
	}
	for _, o := range h.adapters {
		if o.name == cfg.Name || o.cfg.collides(&cfg) {
			return 0, command.Errorf(command.InUse, "Addr %v, Name %q: adapter %q at %v has one of them", cfg.Addr, cfg.Name, o.name,
				o.cfg.Addr)
		}
	}
	owner, err := h.sharedPort(&cfg)
	if err != nil {
		return 0, err
	}
	a, err := newAdapter(h, cfg, owner, more, mac)
	if err != nil {
		return 0, err
	}
	a.index = index
	a.record()
	if known {
		a.begins(wire)
	}
	if int(index) < len(h.adapters) {
		h.adapters[index] = a
	} else {
		h.adapters = append(h.adapters, a)
	}
	if owner == nil {
		h.ports = append(h.ports, a.port)
	}
	if a.ib != nil {
		h.onFabric.Store(true)
	}
	a.port.followFlow()
	h.extendWildcards(a)
	h.watched++
	h.sleep.wake()
	return a.index, nil
}

// sharedPort returns the adapter whose port a new one shares, nil if none, and completes the new one's configuration. Errors
// are *command.Error.
func (h *Host) sharedPort(cfg *AdapterConfig) (*adapter, error) {
	if cfg.ShareWith == nil {
		return nil, nil
	}
	owner, err := h.adapter(*cfg.ShareWith)
	switch {
	case err != nil:
		return nil, err
	case cfg.Link != nil:
		return nil, command.Errorf(command.Invalid, "Link: the function shares the port of adapter %q, and has no link of its own", owner.name)
	case owner.cfg.ShareWith != nil:
		return nil, command.Errorf(command.Invalid, "ShareWith: adapter %q shares a port itself", owner.name)
	case owner.ib != nil && cfg.Virtual != nil:
		cfg.Link = owner.cfg.Link
		return owner, nil
	case owner.ib != nil:
		return nil, command.Errorf(command.Unsupported, "ShareWith: an InfiniBand port has one function, and virtual ones")
	case owner.cfg.Link == nil:
		return owner, nil
	case owner.cfg.Link.Capabilities().Stations == nil:
		return nil, command.Errorf(command.Unsupported, "ShareWith: the link of adapter %q serves one function", owner.name)
	}
	for _, o := range owner.port.functions {
		if cfg.MAC == o.mac && cfg.VLAN == o.cfg.VLAN || cfg.MAC == ([6]byte{}) {
			return nil, command.Errorf(command.Invalid, "MAC is %x, want one that no function at the port of adapter %q has in VLAN %d", cfg.MAC, owner.name,
				cfg.VLAN)
		}
	}
	if cfg.Link = owner.cfg.Link; cfg.subnet() != 0 {
		cfg.Link = owner.port.overlay.join(cfg.Link, cfg.subnet())
	}
	return owner, nil
}

// ReplaceAdapter replaces a disabled adapter by another, for instance when its port has changed between
// InfiniBand and Ethernet. The new one keeps the index but not the counters, and is disabled at first.
// Errors are those of AddAdapter, and Busy while the old adapter is enabled or others share its port; the old one then stays.
func (h *Host) ReplaceAdapter(index uint32, cfg AdapterConfig) error {
	cfg.Disabled = true
	if err := cfg.complete(); err != nil {
		return err
	}
	cfg.namespace = gid.Namespace()
	more, mac, _ := gid.Interface(cfg.Addr)
	wire, known := h.wireOf(&cfg)
	err := func() error {
		h.lock()
		defer h.finish()
		old, err := h.adapter(index)
		if err != nil {
			return err
		}
		if old.enabled {
			return command.Errorf(command.Busy, "adapter %q is enabled; another takes its place while it is disabled", old.name)
		}
		for _, o := range h.adapters {
			if o != old && (o.name == cfg.Name || o.cfg.Addr == cfg.Addr && o.cfg.UDPPort == cfg.UDPPort) {
				return command.Errorf(command.InUse, "Addr %v, Name %q: adapter %q at %v has one of them", cfg.Addr, cfg.Name, o.name,
					o.cfg.Addr)
			}
		}
		owner, err := h.replacedPort(old, &cfg)
		if err != nil {
			return err
		}
		a, err := newAdapter(h, cfg, owner, more, mac)
		if err != nil {
			return err
		}
		h.leavePort(old, a)
		_ = old.close()
		a.index = index
		if known {
			a.begins(wire)
		}
		h.adapters[index] = a
		if taps := old.links.Taps(); len(taps) > 0 { // captures are the adapter's, whatever its port is
			a.watched = old.watched
			a.watch()
			a.setTaps(taps)
		}
		if a.ib != nil {
			h.onFabric.Store(true)
		}
		h.watched++
		h.sleep.wake()
		return nil
	}()
	h.evict()
	return err
}

// newAdapter creates an adapter with its engines and links, at the port of owner if that is not nil. more and mac are the
// other addresses and the MAC of its interface.
func newAdapter(h *Host, cfg AdapterConfig, owner *adapter, more []netip.Addr, mac [6]byte) (*adapter, error) {
	a := &adapter{
		host: h, cfg: cfg, name: cfg.Name, limits: cfg.Limits, enabled: true, present: true, wire: link.State{Up: true}, path: cfg.Path,
		mac: cfg.MAC, guid: cfg.GUID, leaves: make(chan struct{}),
		byNumber: map[uint32]*qp{}, ids: map[cm.ID]*cmid{}, groups: map[netip.Addr]int{}, domains: map[fileOfUser]*xrcDomain{},
	}
	a.cfg.Port, a.cfg.DeviceID = max(cfg.Port, 1), cmp.Or(cfg.DeviceID, deviceID)
	addrs := append([]netip.Addr{cfg.Addr}, cfg.Addrs...)
	if cfg.FollowInterface {
		addrs = append(addrs, more...)
	}
	addrs = append(addrs, a.customers()...)
	if a.mac == ([6]byte{}) {
		a.mac = mac
	}
	if a.mac == ([6]byte{}) {
		a.mac = gid.MAC(cfg.Addr)
	}
	if cfg.RoCE == InfiniBand {
		a.mac = [6]byte{}
		var err error
		if a.ib, err = a.newIBPort(h.rand.Uint64(), owner); err != nil {
			return nil, err
		}
		if guids := a.ib.Settings().GUIDs; a.guid == 0 && len(guids) > 0 {
			a.guid = guids[0] // a node may have several ports
		}
		a.present = a.ib.Active()
	}
	a.permanent = a.mac
	if a.guid == 0 {
		a.guid = gid.GUID(a.mac, netip.AddrPortFrom(cfg.Addr, cfg.UDPPort))
	}
	a.ownGUID = a.guid
	if err := a.open(addrs, owner); err != nil {
		return nil, err
	}
	a.look()
	if err := a.makeFunction(owner); err != nil {
		if a.station != nil {
			a.port.dismiss(a) // others go on there
		}
		_ = a.close()
		return nil, err
	}
	if cfg.Disabled {
		a.retire()
		a.unplug()
	}
	return a, nil
}

// makeFunction creates the adapter's function and puts it behind a port: that of owner, or if nil a new one.
func (a *adapter) makeFunction(owner *adapter) error {
	if err := a.makeEngines(); err != nil {
		return err
	}
	if a.port = newPortLoop(a.host); owner != nil {
		a.port = owner.port
	}
	if err := a.port.enlist(a); err != nil {
		return err
	}
	a.port.functions = append(a.port.functions, a)
	a.port.reserve(nil)
	a.station = a.stand()
	a.port.relist()
	a.cut()
	if a.cfg.Ethernet != nil {
		a.nic = newNIC(a, a.cfg.Ethernet)
		if !a.cfg.Disabled {
			return a.nic.start()
		}
	}
	return nil
}

// makeEngines creates the engines of the adapter's function.
func (a *adapter) makeEngines() (err error) {
	r := a.host.rand
	tags := rand8(r.Uint64())
	a.memory = memory.NewTable(int(min(uint64(a.limits.MR)+uint64(a.limits.MW), 1<<24-1)), tags)
	cfg := transport.Config{Memory: a.memory, MaxQPs: int(a.limits.QP), Random: r.Uint64, AnySourcePort: a.cfg.AnySourcePort}
	if a.ib != nil {
		cfg.Taken = a.takenNumber
	}
	a.engine, err = transport.New(cfg)
	if err != nil {
		return asError(err)
	}
	mtu, _ := ib.MTUFor(int(a.mtu))
	a.cm, err = cm.New(cm.Config{
		GUID: a.guid, Rand: r.Uint64, MTU: mtu, MaxRetries: uint8(a.cfg.MaxCMRetries), DisableFlowControl: a.cfg.NoFlowControl,
	})
	if err != nil {
		return command.Errorf(command.Invalid, "%v", err)
	}
	if a.ib != nil {
		a.engine.SetPKeys(a.ib.Keys())
		a.cm.SetPKeys(a.ib.Keys())
		if a.virtual() {
			a.engine.SetManagement(a.ib.Management())
		}
	}
	a.function = rdma.New(rdma.Config{Engine: a.engine, CM: a.cm, IB: a.ib, Programs: services{a}, Occupied: a.occupied})
	return nil
}
