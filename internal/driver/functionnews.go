package driver

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/wire/eth"
)

// functionNews writes the events of virtual functions, by a goroutine: whoever tells of them drives the loop.
type functionNews struct {
	spoofed chan device.Spoofed
	resized chan device.Resized
	done    chan struct{}
}

// followFunctions begins to write events. More than mostEvents of a kind that wait are lost.
func (d *Driver) followFunctions() (spoofed func(device.Spoofed), resized func(device.Resized)) {
	x := &functionNews{spoofed: make(chan device.Spoofed, mostEvents), resized: make(chan device.Resized, mostEvents),
		done: make(chan struct{})}
	d.functionNews = x
	go x.write(d)
	spoofed = func(s device.Spoofed) {
		select {
		case x.spoofed <- s:
		default:
		}
	}
	return spoofed, func(r device.Resized) {
		select {
		case x.resized <- r:
		default:
		}
	}
}

// write writes events until both kinds have ended.
func (x *functionNews) write(d *Driver) {
	defer close(x.done)
	for spoofed, resized := x.spoofed, x.resized; spoofed != nil || resized != nil; {
		select {
		case s, ok := <-spoofed:
			if !ok {
				spoofed = nil
				continue
			}
			d.tellSpoofed(s)
		case r, ok := <-resized:
			if !ok {
				resized = nil
				continue
			}
			d.tellResized(r)
		}
	}
}

func (x *functionNews) close() {
	if x != nil {
		close(x.spoofed)
		close(x.resized)
		<-x.done
	}
}

// tellResized raises the event of an adapter, or a virtual function, that has another MTU.
func (d *Driver) tellResized(c device.Resized) {
	if int(c.Owner) >= len(d.running) {
		return
	}
	r := d.running[c.Owner]
	of := "the port"
	if c.Function != "" {
		of = c.Function
	}
	d.events.Raise(r.Generation, events.MTUChanged{Adapter: r.Name, Function: of, MTU: c.MTU, Before: c.Before, PathMTU: c.PathMTU,
		PathBefore: c.Was})
}

func (d *Driver) tellSpoofed(s device.Spoofed) {
	if int(s.Owner) >= len(d.running) {
		return
	}
	cause := fmt.Sprintf("with another's source address, the last with %s", s.MAC)
	if s.Reason == eswitch.EtherType {
		cause = fmt.Sprintf("of an EtherType that it may not send, the last 0x%04x", uint16(s.Type))
	}
	r := d.running[s.Owner]
	d.besides.Warn("spoof protection has dropped frames", "adapter", r.Name, "function", s.Function, "frames", s.Frames, "cause", cause)
	d.events.Raise(r.Generation, events.VFSpoofed{Adapter: r.Name, VF: s.Number, Function: s.Function, Frames: s.Frames, Cause: cause})
}

// embeddedSwitch returns what adapter i's keys say of the switch between its port's functions (WinOF-2 24.4, VF Spoof Protection and
// VF's DHCP Redirections; WinOF 5.50, 4.5.3.5.3).
func (d *Driver) embeddedSwitch(i uint32) (cfg eswitch.Config, err error) {
	r := d.running[i]
	var types []eth.EtherType
	for n := range 8 {
		if v, set := r.number(fmt.Sprintf("VFAllowedTxEtherType%d", n)); set {
			types = append(types, eth.EtherType(v))
		}
	}
	cfg.RedirectDHCP, cfg.CountSpoofed = r.value("RedirectVfDHCPToPF") != 0, r.Generation == catalogue.MLX4
	cfg.Protection, err = eswitch.NewProtection(r.value("VFAllowedTxEtherTypeListEnable") != 0, types)
	return cfg, err
}

// startSwitch makes the embedded switch of adapter i's port work as its keys say. The caller holds changes.
func (d *Driver) startSwitch(i uint32) {
	cfg, err := d.embeddedSwitch(i)
	if err == nil {
		err = d.host.SetSwitch(i, cfg)
	}
	if err != nil {
		d.log.Warn("the embedded switch does not work as the keys say", "adapter", d.running[i].Name, "cause", err)
	}
}

// showSwitch adds to a status what the embedded switch of adapter i's port does. The caller holds changes.
func (d *Driver) showSwitch(i uint32, s *api.SRIOVStatus) {
	cfg, err := d.embeddedSwitch(i)
	if err != nil {
		return
	}
	s.RedirectsDHCP, s.EtherTypes = cfg.RedirectDHCP, []string{}
	if cfg.Protection.Off() {
		s.EtherTypes = append(s.EtherTypes, "any but 0x8808")
		return
	}
	for _, t := range cfg.Protection.Types() {
		s.EtherTypes = append(s.EtherTypes, fmt.Sprintf("0x%04x", uint16(t)))
	}
}
