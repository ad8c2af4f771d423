package driver

import (
	"errors"
	"fmt"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/captures"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/link/packet"
)

// words returns the adapters with their counters.
func (d *Driver) words() []collector.Adapter {
	var out []collector.Adapter
	teams := d.Roster.Counted()
	for _, w := range d.host.Counters() {
		at := d.cfg.Slot(int(w.Adapter))
		w.Healing = d.healing.counters(w.Adapter)
		out = append(out, collector.Adapter{
			Counters: w, Generation: d.running[w.Adapter].Generation, Device: at.Device, Port: at.Port,
			Interfaces: d.interfaces(int(w.Adapter), w.Ethernet), Functions: d.functionWords(w.Adapter),
			Teams: teams[w.Name], VLANs: d.vlanWords(w.Adapter), Queues: d.queueWords(w.Adapter), Overlay: d.countedOverlay(w.Adapter),
		})
	}
	return out
}

func (d *Driver) addAdapters() (err error) {
	for i := range d.running {
		d.take(i)
	}
	spoofed, resized := d.followFunctions()
	if d.host, err = device.NewHost(device.Config{Log: d.log, GIDInterval: d.gidInterval(),
		Agreed: d.followAgreements(), DroplessExpired: d.followExpiries(), Spoofed: spoofed, Resized: resized,
		Broken: d.healing.broke}); err != nil {
		return err
	}
	d.Tracer.Attach(d.host)
	d.Recorder = captures.New(captureDriver{d}, d.host, d.log)
	d.unsubscribe = d.host.Subscribe(d.adapterChanged)
	for i, a := range d.cfg.Adapters {
		if err := d.addAdapter(i); err != nil {
			at := fmt.Sprint("at ", a.Address) // the UDP port may be another key's
			if a.Cable() {
				at = "with its cable"
			}
			err = fmt.Errorf("adapter %q %s: %w", a.Name, at, err)
			d.events.Raise(d.running[i].Generation, events.AdapterStartFailed{Adapter: a.Name, Cause: err})
			return err
		}
	}
	return d.joinLater()
}

// joinLater has adapters stand on teams whose carriers come after them.
func (d *Driver) joinLater() error {
	for i, r := range d.running {
		if !r.parked || d.Roster.Idle(i) {
			continue
		}
		if err := d.unpark(i); err != nil {
			err = fmt.Errorf("adapter %q on its team: %w", r.Name, err)
			d.events.Raise(r.Generation, events.AdapterStartFailed{Adapter: r.Name, Cause: err})
			return err
		}
	}
	return nil
}

// addAdapter adds adapter i as specified by the configuration and the registry.
func (d *Driver) addAdapter(i int) error {
	a, r := d.cfg.Adapters[i], d.running[i]
	_, refused := d.settlePort(i)
	if refused != nil && !stays(refused) {
		return refused
	}
	if a.Cable() {
		if err := d.ipoib.openSystems(uint32(i)); err != nil {
			if r.cable() != nil {
				err = errors.Join(err, r.cable().Close())
			}
			return err
		}
	}
	k := d.keys(i)
	cfg := d.deviceConfig(i, k)
	if d.Roster.Idle(i) || d.standsAt(i) > i {
		if err := d.putAside(i, &cfg); err != nil {
			return err
		}
		r.parked = true
	} else if a.WholeFrames() {
		err := d.putOnWire(i, &cfg)
		if err == nil {
			err = d.putHost(i, &cfg)
		}
		if err != nil {
			closeParts(&cfg)
			return err
		}
	}
	index, err := d.host.AddAdapter(cfg)
	if err != nil {
		closeParts(&cfg)
		return err
	}
	d.tellIdentity(index)
	if err := d.setUp(index, a); err != nil {
		return err
	}
	disabled, known := d.registry.Disabled(r.known())
	if !known {
		disabled = r.disabled
	}
	if disabled || r.parked {
		if r.cable() != nil {
			r.cable().SetPlugged(false)
		}
		return nil
	}
	if refused == nil {
		refused = d.enable(i, k)
	}
	if stays(refused) { // the other adapters do
		d.besides.Warn("the adapter does not start", "adapter", r.Name, "cause", refused)
		d.events.Raise(r.Generation, events.AdapterStartFailed{Adapter: r.Name, Cause: refused})
		return nil
	}
	return refused
}

// closeParts closes what an adapter that does not come to be would have had. Its host is closed with the driver.
func closeParts(cfg *device.AdapterConfig) {
	if cfg.Link != nil {
		_ = cfg.Link.Close()
	}
}

// plainConfig returns the part of the device's configuration that does not depend on the port's protocol.
func (d *Driver) plainConfig(a *config.Adapter) device.AdapterConfig {
	path, _ := config.ParsePath(a.Path) // Complete has checked it
	frames, _ := packet.ParseMode(a.Frames)
	return device.AdapterConfig{
		Name: a.Name, Addr: a.Address, FollowInterface: a.FollowInterface, Path: path, ReceiveBuffer: a.ReceiveBuffer, Frames: frames,
		Disabled:      true,
		AnySourcePort: a.AnySourcePort,
	}
}

// enable enables adapter i with these settings. What the link does not support is refused, with its event,
// and replaced by the manuals' fallback: the largest frame that fits, the best mode of the link (WinOF-2
// 1.21, RoCE).
func (d *Driver) enable(i int, k keys) error {
	r := d.running[i]
	if err := d.distinct(i); err != nil {
		return err
	}
	if err := d.legal(i, &k); err != nil {
		return err
	}
	mode, wanted := k.RoCE, k.RoCE
	if !k.rdma {
		d.events.Raise(r.Generation, events.RoCEMode{Adapter: r.Name, Mode: "none"})
		r.off.Store(true) // the device stays disabled
		if d.cfg.Adapters[i].Host == "" {
			return nil
		}
		k.RoCE = device.RoCEv2 // nobody sees it
		return errors.Join(d.host.Configure(uint32(i), k.Settings), d.changePriorities(i), d.changeFlowControl(i), d.startEthernet(i))
	}
	if d.cfg.Adapters[i].Host != "" {
		if err := d.host.ConfigureEthernet(uint32(i), d.ownEthernet(i)); err != nil {
			return err
		}
	}
	err := d.host.Configure(uint32(i), k.Settings)
	if isUnsupported(err) && mode != device.RoCEv2 {
		k.RoCE = device.RoCEv2
		d.besides.Warn("the RoCE mode is refused", "adapter", r.Name, "mode", pick(roceNames[:], wanted), "cause", err, "used",
			pick(roceNames[:], k.RoCE))
		d.events.Raise(r.Generation, events.RoCEModeRefused{
			Adapter: r.Name, Mode: pick(roceNames[:], wanted), Cause: err, Used: pick(roceNames[:], k.RoCE),
		})
		err = d.host.Configure(uint32(i), k.Settings)
	}
	var wrong *device.FrameSizeError
	if k.fromRegistry && errors.As(err, &wrong) {
		d.besides.Warn("RoceMaxFrameSize is refused", "adapter", r.Name, "problem", err)
		d.events.Raise(r.Generation, events.RegistryValueIgnored{
			Key: r.Class().String() + `\RoceMaxFrameSize`, Value: fmt.Sprint(wrong.Size), Allowed: fmt.Sprintf("up to %d on this link",
				wrong.Most), Used: fmt.Sprint(wrong.Most),
		})
		k.RoceMaxFrameSize = 0
		err = d.host.Configure(uint32(i), k.Settings)
	}
	if err == nil {
		err = errors.Join(d.changeCongestion(i), d.changePriorities(i), d.changeFlowControl(i))
		d.checkTrust(i)
	}
	if err != nil {
		return err
	}
	if r.cable() != nil {
		r.cable().SetPlugged(true)
	} else {
		d.tellFrame(uint32(i), k.MTU)
		d.tellSwitchedOff(i)
		d.tellDifference(i)
	}
	d.starting.Store(uint32(i), pick(roceNames[:], k.RoCE))
	defer d.starting.Delete(uint32(i))
	if err := d.host.SetAdapterState(uint32(i), true); err != nil {
		return err
	}
	d.host.Settle() // its events have been written
	return nil
}

func isUnsupported(err error) bool {
	var e *command.Error
	return errors.As(err, &e) && e.Code == command.Unsupported
}

// SetAdapter enables or disables an adapter while programs use it (WinOF manual 4.11.2). As in Windows'
// Device Manager this persists when the driver restarts. Enabling reads the current keys.
func (d *Driver) SetAdapter(q AdapterRequest) error {
	index, err := d.find(q.Adapter)
	if err != nil {
		return err
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	if d.Roster.Idle(int(index)) {
		return d.Roster.SwitchMember(int(index), q.Enable)
	}
	r := d.running[index]
	former, known := d.registry.Disabled(r.known())
	if !known || former == q.Enable {
		if err := d.registry.Apply(r.Disable(!q.Enable)); err != nil {
			return err
		}
	}
	if d.enabled(index) == q.Enable {
		return nil
	}
	if err := d.switchAdapter(r, index, q.Enable); err != nil {
		return errors.Join(err, d.registry.Apply(r.Disable(!d.enabled(index))))
	}
	return nil
}

// switchAdapter enables or disables an adapter that is not in that state yet.
func (d *Driver) switchAdapter(r *running, index uint32, enable bool) error {
	if !enable {
		if err := d.disable(r, index); err != nil {
			return err
		}
		d.events.Raise(r.Generation, events.AdapterDisabled{Adapter: r.Name})
		return nil
	}
	if err := d.enableWithKeys(r, index); err != nil {
		return err
	}
	d.healing.enabledByHand(index)
	d.events.Raise(r.Generation, events.AdapterEnabled{Adapter: r.Name})
	return nil
}

// enabled reports whether the adapter is enabled; programs can change that too.
func (d *Driver) enabled(index uint32) bool {
	return d.running[index].off.Load() || d.host.Counters()[index].Enabled
}

func (d *Driver) disable(r *running, index uint32) error {
	d.stopFunctions(index)
	ran := d.ipoib.end(index)
	if err := d.host.SetAdapterState(index, false); err != nil {
		if ran {
			d.ipoib.set(index, true)
		}
		return err
	}
	d.commands.Release(index) // a fault
	r.off.Store(false)
	d.host.Settle() // its events have been written
	return nil
}

// enableWithKeys enables an adapter with its current keys.
func (d *Driver) enableWithKeys(r *running, index uint32) error {
	d.take(int(index))
	err := d.host.SetFirmware(index, r.runs())
	if err == nil {
		err = d.senseAgain(int(index))
	}
	if err == nil {
		err = d.host.Mend(index)
	}
	if err == nil {
		err = d.enable(int(index), d.keys(int(index)))
	}
	if err != nil {
		d.events.Raise(r.Generation, events.AdapterStartFailed{Adapter: r.Name, Cause: err})
		return err
	}
	d.host.SetGIDInterval(d.gidInterval())
	d.startFunctions(index)
	return nil
}

// senseAgain determines the protocol of the port of adapter i, which is disabled, and replaces the adapter
// if it has changed.
func (d *Driver) senseAgain(i int) error {
	changed, err := d.settlePort(i)
	if err != nil || !changed {
		return err
	}
	k := d.keys(i)
	if err := d.host.ReplaceAdapter(uint32(i), d.deviceConfig(i, k)); err != nil {
		return err
	}
	d.recallKind(uint32(i))
	d.tellIdentity(uint32(i))
	return d.setUp(uint32(i), d.cfg.Adapters[i])
}

// RestartAdapter disables and enables an adapter, which makes it read its keys; one that was disabled is
// enabled. If it cannot start with them, it continues with the previous ones.
func (d *Driver) RestartAdapter(name string) error {
	index, err := d.find(name)
	if err != nil {
		return err
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	if err := d.Roster.MayRestart(int(index)); err != nil {
		return err
	}
	r := d.running[index]
	before, was := r.started, d.enabled(index)
	if disabled, _ := d.registry.Disabled(r.known()); disabled {
		if err := d.registry.Apply(r.Disable(false)); err != nil {
			return err
		}
	}
	if was {
		if err := d.disable(r, index); err != nil {
			return err
		}
	}
	if err := d.enableWithKeys(r, index); err != nil {
		d.settings.Lock()
		r.started = before
		d.settings.Unlock()
		if was {
			err = errors.Join(err, d.host.SetFirmware(index, r.runs()), d.enable(int(index), d.keys(int(index))))
			d.startFunctions(index)
		}
		return err
	}
	d.healing.enabledByHand(index)
	return nil
}
