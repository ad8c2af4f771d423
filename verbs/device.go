package verbs

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// RoCE is the version of RDMA over Converged Ethernet that a port speaks, or InfiniBand.
type RoCE uint32

// The versions, and InfiniBand.
const (
	RoCENone   RoCE = iota // RDMA is disabled
	RoCEv1                 // MAC-based GIDs
	RoCEv125               // IP-based v1 (v1.25)
	RoCEv2                 // UDP
	InfiniBand             // not RoCE: the port is an InfiniBand port
)

// String returns the version as shown in status output.
func (r RoCE) String() string {
	switch r {
	case RoCENone:
		return "none"
	case RoCEv1:
		return "v1"
	case RoCEv125:
		return "v1.25"
	case RoCEv2:
		return "v2"
	case InfiniBand:
		return "InfiniBand"
	}
	return "unknown"
}

// Device is an adapter with its port.
type Device struct {
	host  *Host
	index uint32
	name  string
	addr  netip.Addr
	limit Attributes // as of when the device was listed; limits do not change

	fatals *atomic.Uint32 // how often the adapter was disabled
}

// Attributes are the state and limits of an adapter (IBA 11.2.1.2).
type Attributes struct {
	Name      string
	GUID      uint64
	Addr      netip.Addr // the first address of the port
	Up        bool
	RoCE      RoCE
	ActiveMTU int // largest payload of a packet in bytes
	LinkMTU   int // largest IP packet in bytes
	UDPPort   uint16
	VendorID  uint32
	DeviceID  uint32
	// Speed of an Ethernet port's link in bit/s; 0: it is down, or not known.
	Speed uint64

	MaxQP, MaxCQ, MaxSRQ, MaxMR, MaxMW, MaxPD, MaxAH int
	MaxQPDepth, MaxCQDepth, MaxSRQDepth              int
	MaxSGE, MaxInline                                int
	MaxReadResponder, MaxReadInitiator               int
	MaxMessage, MaxRegion                            uint64
	// ProcessorAtomics reports whether RDMA atomics are also atomic with respect to the processors, in any
	// memory. If false, they still are in memory from PD.Allocate.
	ProcessorAtomics bool
}

// GID is a row of a port's GID table.
type GID struct {
	Index int
	RoCE  RoCE
	Addr  netip.Addr // the GID as an IP address
	GID   [16]byte
}

// Counter is a named counter of an adapter (WinOF manual, "Adapter Diagnostics
// Counters").
type Counter struct {
	Name  string
	Value uint64
}

func attributesFrom(i *command.AdapterInfo) Attributes {
	return Attributes{
		Name: text(i.Name[:]), GUID: i.GUID, Addr: i.Addr.IP(), Up: i.Up != 0,
		RoCE: RoCE(i.RoCE), ActiveMTU: int(i.ActiveMTU), LinkMTU: int(i.LinkMTU),
		UDPPort: uint16(i.UDPPort), VendorID: i.VendorID, DeviceID: i.DeviceID, Speed: uint64(i.LineRate) * 1e6,
		MaxQP: int(i.MaxQP), MaxCQ: int(i.MaxCQ), MaxSRQ: int(i.MaxSRQ), MaxMR: int(i.MaxMR),
		MaxMW: int(i.MaxMW), MaxPD: int(i.MaxPD), MaxAH: int(i.MaxAH),
		MaxQPDepth: int(i.MaxQPDepth), MaxCQDepth: int(i.MaxCQDepth), MaxSRQDepth: int(i.MaxSRQDepth),
		MaxSGE: int(i.MaxSGE), MaxInline: int(i.MaxInline),
		MaxReadResponder: int(i.MaxReadResponder), MaxReadInitiator: int(i.MaxReadInitiator),
		MaxMessage: i.MaxMessage, MaxRegion: i.MaxRegion, ProcessorAtomics: i.ProcessorAtomics != 0,
	}
}

// text returns a zero-padded name as a string.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// Devices returns the adapters of the host.
func (h *Host) Devices(ctx context.Context) ([]*Device, error) {
	infos, err := h.backend.Adapters(ctx)
	if err != nil {
		return nil, wrapCtx(ctx, "list devices", err)
	}
	devices := make([]*Device, len(infos))
	for i := range infos {
		a := attributesFrom(&infos[i])
		devices[i] = &Device{host: h, index: infos[i].Index, name: a.Name, addr: a.Addr, limit: a, fatals: h.events.fatal(infos[i].Index)}
	}
	return devices, nil
}

// Device returns the adapter called name.
func (h *Host) Device(name string) (*Device, error) {
	devices, err := h.Devices(h.ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		if d.name == name {
			return d, nil
		}
	}
	return nil, newError("open device", ErrNotFound, "no adapter is called %q", name)
}

// DeviceByAddr returns the adapter that has the address.
func (h *Host) DeviceByAddr(addr netip.Addr) (*Device, error) {
	devices, err := h.Devices(h.ctx)
	if err != nil {
		return nil, err
	}
	addr = addr.Unmap()
	for _, d := range devices {
		if d.addr == addr {
			return d, nil
		}
	}
	for _, d := range devices {
		gids, err := d.GIDs()
		if errors.Is(err, ErrRemoved) {
			continue // disabled: it has no addresses but its first
		}
		if err != nil {
			return nil, err
		}
		for _, g := range gids {
			if g.Addr == addr {
				return d, nil
			}
		}
	}
	if d := h.boundAt(addr, devices); d != nil {
		return d, nil
	}
	return nil, newError("open device", ErrAddrNotAvailable, "no adapter has the address %s", addr)
}

// boundAt returns the device where the connection manager has an address that no GID tells: those of RoCE v1 are made from MACs. nil:
// there is none.
func (h *Host) boundAt(addr netip.Addr, devices []*Device) *Device {
	if !addr.IsValid() || addr.IsUnspecified() {
		return nil
	}
	id, err := h.backend.CMCreate(h.ctx, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	if err != nil {
		return nil
	}
	defer func() { _ = h.backend.Destroy(h.ctx, command.KindCM, id) }()
	if _, err := h.backend.CMBind(h.ctx, id, command.Endpoint{Addr: command.AddrFrom(addr)}); err != nil {
		return nil
	}
	info, err := h.backend.CMQuery(h.ctx, id)
	i := slices.IndexFunc(devices, func(d *Device) bool { return d.index == info.Adapter })
	if err != nil || i < 0 {
		return nil
	}
	return devices[i]
}

// Host returns the session that the device belongs to.
func (d *Device) Host() *Host { return d.host }

// Index returns the number by which events name the adapter.
func (d *Device) Index() uint32 { return d.index }

// Name returns the adapter's name, "Ethernet 1".
func (d *Device) Name() string { return d.name }

// Addr returns the first address of the adapter's port.
func (d *Device) Addr() netip.Addr { return d.addr }

// Limits returns the attributes as of when the device was listed; the limits among them do not change.
func (d *Device) Limits() *Attributes { return &d.limit }

// Query returns the adapter's current state and limits.
func (d *Device) Query() (Attributes, error) {
	infos, err := d.host.backend.Adapters(d.host.ctx)
	if err != nil {
		return Attributes{}, wrap("query device", err)
	}
	for i := range infos {
		if infos[i].Index == d.index {
			return attributesFrom(&infos[i]), nil
		}
	}
	return Attributes{}, newError("query device", ErrRemoved, "%s is gone", d.name)
}

// Port holds the attributes that InfiniBand adds to a port. An Ethernet port has only the states, MaxMTU
// and the default partition.
type Port struct {
	State    mad.PortState
	Physical mad.PortPhysicalState
	LID      ib.LID // the first of 1<<LMC
	LMC      uint8
	SMLID    ib.LID
	SMSL     uint8
	Prefix   uint64 // of the subnet's GIDs
	NodeGUID uint64
	PKeys    []ib.PKey // the table as the subnet manager wrote it; empty rows are 0
	MaxMTU   int       // largest payload in bytes that the port supports
	Width    int       // lanes in use; 0: unknown
	Lane     int       // Mb/s of a lane; 0: unknown
	// Capabilities is the CapabilityMask (IBA 14.2.5.6).
	Capabilities uint32
}

// Port returns the port's current InfiniBand attributes.
func (d *Device) Port() (Port, error) {
	i, err := d.host.backend.Port(d.host.ctx, d.index)
	if err != nil {
		return Port{}, wrap("query port", err)
	}
	p := Port{
		State: mad.PortState(i.State), Physical: mad.PortPhysicalState(i.Physical), LID: ib.LID(i.LID), LMC: i.LMC,
		SMLID: ib.LID(i.SMLID), SMSL: i.SMSL, Prefix: i.Prefix, NodeGUID: i.NodeGUID, MaxMTU: int(i.MaxMTU),
		Width: mad.Lanes(i.Width), Lane: int(i.Lane), Capabilities: i.Capabilities,
	}
	for _, k := range i.PKeys[:min(int(i.PKeyCount), len(i.PKeys))] {
		p.PKeys = append(p.PKeys, ib.PKey(k))
	}
	return p, nil
}

// Firmware is what a device runs.
type Firmware struct {
	Version string // such as 1.0.1000; empty: the driver is too old to tell
	Board   string // PSID of the device's image; empty: an embedded adapter, which has no image
}

// Firmware returns what the device runs now: what was burned when it was last started.
func (d *Device) Firmware() (Firmware, error) {
	f, err := d.host.backend.Firmware(d.host.ctx, d.index)
	return Firmware{text(f.Version[:]), text(f.Board[:])}, wrap("query firmware", err)
}

// GIDs returns the port's current GID table.
func (d *Device) GIDs() ([]GID, error) {
	rows, err := d.host.backend.GIDs(d.host.ctx, d.index)
	if err != nil {
		return nil, wrap("query gids", err)
	}
	gids := make([]GID, len(rows))
	for i, r := range rows {
		gids[i] = GID{Index: int(r.Index), RoCE: RoCE(r.RoCE), Addr: netip.AddrFrom16(r.GID).Unmap(), GID: r.GID}
	}
	return gids, nil
}

// Interface is a network interface of the system.
type Interface struct {
	Name  string
	Index int // in the network namespace of the process that has the adapter
}

// Interfaces returns the network interfaces of the system to which the port belongs now: port is that of the port (over
// Ethernet the one that has its address, on an InfiniBand port that of IPoIB), the zero value if it has none, and rows are
// those that have the addresses of rows of the GID table, by their index.
func (d *Device) Interfaces() (port Interface, rows map[int]Interface, err error) {
	list, err := d.host.backend.Interfaces(d.host.ctx, d.index)
	if err != nil {
		return port, nil, wrap("query interfaces", err)
	}
	rows = map[int]Interface{}
	for _, i := range list {
		x := Interface{Name: text(i.Name[:]), Index: int(i.Index)}
		if i.Row == command.WholePort {
			port = x
		} else {
			rows[int(i.Row)] = x
		}
	}
	return port, rows, nil
}

// Counters returns the current values of the adapter's diagnostic counters.
func (d *Device) Counters() ([]Counter, error) {
	rows, err := d.host.backend.Counters(d.host.ctx, d.index)
	if err != nil {
		return nil, wrap("query counters", err)
	}
	counters := make([]Counter, len(rows))
	for i := range rows {
		counters[i] = Counter{Name: text(rows[i].Name[:]), Value: rows[i].Value}
	}
	return counters, nil
}

// SetEnabled enables or disables an embedded adapter (WinOF manual 4.11.2). While it is disabled, new
// requests fail with ErrRemoved, waiting ones are canceled, posted ones are flushed, and the adapter's
// objects are released. Adapters of a driver process can only be disabled by the driver: ErrUnsupported.
func (d *Device) SetEnabled(enabled bool) error {
	if d.host.device == nil {
		return newError("set device state", ErrUnsupported, "the adapter belongs to the driver; use its softvpi command")
	}
	return wrap("set device state", d.host.device.SetAdapterState(d.index, enabled))
}
