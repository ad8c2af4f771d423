package device

import "github.com/softvpi/softvpi/internal/transport/congestion"

// freeRate is the line rate, in Mbit/s, that congestion control begins with on a link whose rate nothing limits.
const freeRate = 100_000

// SetCongestion changes congestion control of an adapter, at once. Without a LineRate it is that of the adapter's link. On
// InfiniBand ports and in RoCE modes other than v2 there is none: their packets have no place for marks, or other ones (WinOF-2
// Ethernet b, Restrictions and Limitations). Errors are a *command.Error that names the invalid field; nothing is changed then.
func (h *Host) SetCongestion(index uint32, s congestion.Settings) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	before := a.congestion
	a.congestion = s
	if err := a.controlCongestion(); err != nil {
		a.congestion = before
		return err
	}
	return nil
}

// controlCongestion applies the settings of congestion control to what the adapter is now.
func (a *adapter) controlCongestion() error {
	s := a.congestion
	if a.ib != nil || a.cfg.RoCE != RoCEv2 {
		s.React, s.Notify = 0, 0
	}
	if p := &s.Reaction; p.LineRate == 0 {
		if p.LineRate = float64(a.speed()) / 1e6; p.LineRate == 0 {
			p.LineRate = freeRate
		}
	}
	return a.engine.SetCongestion(s)
}

// followSpeed adapts congestion control to the speed of the port's wire, which may have changed.
func (a *adapter) followSpeed() {
	if err := a.controlCongestion(); err != nil { // which they were before, with another speed
		a.host.log.Warn("congestion control does not follow the speed of the wire", "adapter", a.name, "cause", err)
	}
}
