package device

import (
	"fmt"
	"net"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/wait"
	"github.com/softvpi/softvpi/wire/ib"
)

// Settings are the parts of an adapter's configuration that may change while it is disabled. Zero fields
// mean the same defaults as in AdapterConfig.
type Settings struct {
	RoCE             uint32
	UDPPort          uint16
	RoceMaxFrameSize uint32
	NoFlowControl    bool
	NoRawPackets     bool
	NoRDMA           bool
	MaxCMRetries     int
	MTU              uint32
	// MAC replaces the permanent one (NetworkAddress); 0: no replacement.
	MAC [6]byte
	// GUID replaces that of the port, unless its fabric names it (firmware); 0: no replacement.
	GUID       uint64
	Moderation Moderation
	Polling    wait.Polling
	// Limits that are not zero replace those of the adapter; none may exceed the defaults.
	Limits Limits
}

// FrameSizeError reports a RoceMaxFrameSize that the link cannot carry.
type FrameSizeError struct {
	Size, Most uint32 // bytes of payload
	MTU        int    // of the link
}

func (e *FrameSizeError) Error() string {
	return fmt.Sprintf("RoceMaxFrameSize is %d, want at most %d with a link MTU of %d", e.Size, e.Most, e.MTU)
}

// Configure changes the settings of a disabled adapter; they take effect when it is enabled. Errors are
// those of AddAdapter, Busy while the adapter is enabled, and *FrameSizeError; nothing is changed then.
func (h *Host) Configure(index uint32, s Settings) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	if a.enabled {
		return command.Errorf(command.Busy, "adapter %q is enabled; its settings change while it is disabled", a.name)
	}
	cfg := a.cfg
	cfg.RoCE, cfg.UDPPort, cfg.RoceMaxFrameSize = s.RoCE, s.UDPPort, s.RoceMaxFrameSize
	cfg.NoFlowControl, cfg.MaxCMRetries, cfg.Limits = s.NoFlowControl, s.MaxCMRetries, s.Limits
	cfg.NoRawPackets, cfg.NoRDMA = s.NoRawPackets, s.NoRDMA
	cfg.MTU, cfg.Moderation, cfg.Polling = s.MTU, s.Moderation, s.Polling
	if s.MAC[0]&1 != 0 {
		return command.Errorf(command.Invalid, "MAC is %v, want the address of one station", net.HardwareAddr(s.MAC[:]))
	}
	if err := cfg.complete(); err != nil {
		return err
	}
	for _, o := range h.adapters {
		if o != a && o.cfg.collides(&cfg) {
			return command.Errorf(command.InUse, "UDPPort %d at %v: adapter %q has it", cfg.UDPPort, cfg.Addr, o.name)
		}
	}
	link := int(a.linkMTU)
	if w, ok := a.cfg.interfaceWire(); ok && !w.gone {
		link = w.mtu // as it will be when the adapter is enabled
	} else if mtu, ok := a.framesMTU(); ok {
		link = mtu
	}
	ip := cfg.ipMTU(link)
	mtu, ok := ib.MTUFor(ip - maxOverhead)
	if !ok {
		return errTooSmall(ip)
	}
	if most := uint32(mtu.Bytes()); cfg.RoceMaxFrameSize > most {
		return &FrameSizeError{cfg.RoceMaxFrameSize, most, ip}
	}
	if a.mac = s.MAC; a.mac == ([6]byte{}) {
		a.mac = a.permanent
	}
	if a.guid = a.ownGUID; s.GUID != 0 && a.ib == nil {
		a.guid = s.GUID
	}
	a.cm.SetGUID(a.guid)
	return a.configure(cfg, link)
}

// configure applies settings that have been checked. link is the MTU of the port's link.
func (a *adapter) configure(cfg AdapterConfig, link int) error {
	a.cfg, a.limits = cfg, cfg.Limits
	if err := a.setMTU(link); err != nil {
		return err
	}
	mtu, _ := ib.MTUFor(int(a.mtu))
	a.cm.SetMTU(mtu)
	a.cm.SetPolicy(uint8(cfg.MaxCMRetries), cfg.NoFlowControl)
	if err := a.links.Reframe(a.framing()); err != nil {
		return err
	}
	a.station.MAC, a.station.UDPPort = a.mac, cfg.UDPPort
	if err := a.reseat(); err != nil {
		return err
	}
	a.setGIDs(a.links.Addrs())
	return a.controlCongestion()
}

// SetGIDInterval changes how often the addresses of the interfaces are checked, up to 10 s; a negative
// value means never, 0 every 3 s.
func (h *Host) SetGIDInterval(d time.Duration) {
	if d == 0 {
		d = defaultGIDInterval
	}
	select {
	case h.gidInterval <- d:
	case <-h.done:
	}
}
