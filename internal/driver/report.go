package driver

import (
	"errors"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/driver/dump"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/os/journal"
	"github.com/softvpi/softvpi/internal/pause"
)

// openEvents opens the event log in the state directory, and the system's log if requested.
func (d *Driver) openEvents(systemLog string) (err error) {
	sinks := []func(events.Record){d.Tracer.Event}
	if systemLog != "" {
		d.system, err = events.OpenSystemLog(systemLog, d.log)
		var field *events.FieldError
		if errors.As(err, &field) {
			return api.Wrong(field.Field, field.Value, field.Allowed)
		}
		if err != nil {
			return err
		}
		sinks = append(sinks, d.system.Write)
		d.besides = besideEvents(d.log, d.system.Journal())
	}
	d.events = events.Open(events.Config{Directory: filepath.Join(d.cfg.State, "events"), Sinks: sinks, Log: d.log})
	return nil
}

// besideEvents returns the log of what is an event, too. Where both would be entries of one journal the event's is the one that is kept.
func besideEvents(log *slog.Logger, toJournal bool) *slog.Logger {
	if _, same := log.Handler().(*journal.Handler); same && toJournal {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// firmwareVersion returns the version of the firmware that an adapter runs.
func (d *Driver) firmwareVersion(r *running) string {
	d.settings.RLock()
	defer d.settings.RUnlock()
	return r.firmware.Version.String()
}

// runs returns what programs are told of the firmware that an adapter runs. The caller holds changes or settings.
func (r *running) runs() (f command.Firmware) {
	copy(f.Version[:], r.firmware.Version.String())
	copy(f.Board[:], r.firmware.PSID)
	return f
}

// tellIdentity raises the event that identifies an adapter.
func (d *Driver) tellIdentity(index uint32) {
	info, err := d.host.AdapterInfo(index)
	if err != nil {
		return
	}
	r := d.running[index]
	kind, part := "Ethernet", events.Hex(r.Generation.PartID())
	if r.cable() != nil {
		kind = "InfiniBand"
	}
	d.events.Raise(r.Generation, events.Identification{
		Adapter: r.Name, Vendor: events.Hex(info.VendorID), Device: part, SubsystemVendor: events.Hex(info.VendorID),
		Subsystem: part, Revision: "0", Firmware: d.firmwareVersion(r), PortType: kind,
	})
}

// tellFrame raises the event for a *JumboPacket larger than the link's limit, which is used instead.
func (d *Driver) tellFrame(index, wanted uint32) {
	info, err := d.host.AdapterInfo(index)
	if err != nil || wanted <= info.LinkMTU {
		return
	}
	r, frame := d.running[index], info.LinkMTU+ethernetHeader
	d.events.Raise(r.Generation, events.JumboPacketReduced{Adapter: r.Name, Value: wanted + ethernetHeader, Supported: frame, Used: frame})
}

// tellSwitchedOff raises the events for what an Ethernet adapter with RoCE does without, by its keys.
func (d *Driver) tellSwitchedOff(i int) {
	r := d.running[i]
	if r.Generation != catalogue.MLX5 { // the list of WinOF has no such events
		return
	}
	if r.value("*RSS") == 0 {
		d.events.Raise(r.Generation, events.RSSOff{Adapter: r.Name})
	}
	if f, _ := r.flowControl(); f.Obeys == (pause.Scope{}) && f.Asks == (pause.Scope{}) && d.ownQoS(i).Settings.PFC == 0 {
		d.events.Raise(r.Generation, events.FlowControlOff{Adapter: r.Name})
	}
}

// tellDifference raises the event for a port that starts beside one of the same device with the other RSS mode.
func (d *Driver) tellDifference(i int) {
	r, at := d.running[i], d.cfg.Slot(i)
	for _, o := range d.host.Counters() {
		other := d.running[o.Adapter]
		if int(o.Adapter) != i && o.Enabled && other.cable() == nil && d.cfg.Slot(int(o.Adapter)).Device == at.Device &&
			(other.value("*RSS") == 0) != (r.value("*RSS") == 0) && r.Generation == catalogue.MLX4 {
			d.events.Raise(r.Generation, events.RSSModesDiffer{Adapter: r.Name})
		}
	}
}

// adapterChanged raises the events for an adapter's change of state, whoever caused it. When the driver is
// the cause it waits for them, so that they are in the log in order. Therefore adapterChanged must not
// take a lock that is held while changing adapters.
func (d *Driver) adapterChanged(c notify.Change) {
	r := d.running[c.Adapter]
	cable := r.cable()
	if cable != nil && c.Flags&(notify.RDMADisabled|notify.Up) != 0 { // programs can disable and enable adapters too
		cable.SetPlugged(c.Flags&notify.Up != 0)
		d.ipoib.set(c.Adapter, c.Flags&notify.Up != 0)
	}
	if c.Flags&notify.RDMAEnabled != 0 {
		if mode, ok := d.starting.LoadAndDelete(c.Adapter); ok {
			d.events.Raise(r.Generation, events.AdapterStarted{
				Adapter: r.Name, MAC: d.host.Addresses(c.Adapter).MAC, Address: c.Addr,
			})
			if cable == nil {
				d.events.Raise(r.Generation, events.RoCEMode{Adapter: r.Name, Mode: mode.(string)})
			}
		}
	}
	if c.Flags&notify.Down != 0 {
		d.events.Raise(r.Generation, events.LinkDown{Adapter: r.Name, Port: uint32(d.cfg.Slot(int(c.Adapter)).Port)})
		d.dumpPort(c.Adapter, dump.PortDown)
	}
	if c.Flags&notify.Unknown != 0 {
		d.dumpPort(c.Adapter, dump.PortUnknown)
	}
	if c.Flags&notify.RDMADisabled != 0 {
		d.events.Raise(r.Generation, events.AdapterStopped{Adapter: r.Name})
	}
	if c.Flags&notify.Up != 0 {
		d.events.Raise(r.Generation, events.LinkUp{Adapter: r.Name, Port: uint32(d.cfg.Slot(int(c.Adapter)).Port)})
		d.dumpPort(c.Adapter, dump.PortUp)
	}
	if c.Flags&notify.OtherMode != 0 {
		mode := "v2"
		for _, a := range d.host.Snapshot().Adapters {
			if a.Info.Index == c.Adapter {
				mode = pick(roceNames[:], a.Info.RoCE)
			}
		}
		d.events.Raise(r.Generation, events.RoCEModesDiffer{Adapter: r.Name, Mode: mode})
	}
	if c.Flags&notify.SameAddress != 0 {
		d.events.Raise(r.Generation, events.DuplicateAddress{Adapter: r.Name, MAC: c.MAC[:], Address: c.Addr})
	}
	if c.Flags&notify.SmallMTU != 0 {
		if info, err := d.host.AdapterInfo(c.Adapter); err == nil {
			d.events.Raise(r.Generation, events.MTUTooSmall{Adapter: r.Name, Firmware: d.firmwareVersion(r), Maximum: int(info.LinkMTU),
				Minimum: device.LeastMTU})
		}
	}
	if c.Flags&notify.GIDChange != 0 {
		d.events.Raise(r.Generation, events.AddressesChanged{Adapter: r.Name, Addresses: d.host.Addresses(c.Adapter).Served})
	}
	if a := d.host.Addresses(c.Adapter); a.Unused > 0 && c.Flags&(notify.Up|notify.GIDChange) != 0 {
		d.events.Raise(r.Generation, events.TooManyAddresses{Adapter: r.Name, Limit: a.Most})
	}
}

// tellStopped raises the events of the driver's end.
func (d *Driver) tellStopped() {
	for _, a := range d.host.Counters() {
		if a.Enabled {
			d.events.Raise(d.running[a.Adapter].Generation, events.AdapterStopped{Adapter: a.Name})
		}
	}
	d.events.Raise(0, events.DriverStopped{})
}

// programEnded raises the events of programs that ended abnormally.
func (d *Driver) programEnded(p server.Departure) {
	switch {
	case p.Cause == nil || d.stopping.Load():
	case errors.Is(p.Cause, io.EOF):
		d.events.Raise(0, events.ProgramDied{Program: p.Name, PID: p.PID})
	default:
		d.events.Raise(0, events.ProgramDisconnected{Program: p.Name, PID: p.PID, Cause: p.Cause})
	}
}

// programRefused raises the event of a program that wanted more than the limits allow.
func (d *Driver) programRefused(r server.Refusal) {
	d.events.Raise(0, events.ProgramRefused{Program: r.Name, PID: r.PID, Cause: r.Cause})
}
