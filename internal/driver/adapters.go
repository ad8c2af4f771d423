package driver

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"runtime"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/events"
)

// mounted is what other packages serve at the management interface.
func (d *Driver) mounted() []func(*http.ServeMux) {
	d.counters = counters.New(counters.Config{Read: d.words, CPUs: runtime.NumCPU()})
	return []func(*http.ServeMux){d.mountCaptures, d.mountLinks, d.counters.Mount, d.events.Mount}
}

// words are the adapters with their counters.
func (d *Driver) words() []counters.Adapter {
	var out []counters.Adapter
	for _, w := range d.host.Counters() {
		out = append(out, counters.Adapter{Counters: w, Generation: d.running[w.Adapter].Generation})
	}
	return out
}

func (d *Driver) addAdapters() (err error) {
	for i := range d.running {
		d.take(i)
	}
	if d.host, err = device.NewHost(device.Config{Log: d.log, GIDInterval: d.gidInterval()}); err != nil {
		return err
	}
	d.unsubscribe = d.host.Subscribe(d.adapterChanged)
	for i, a := range d.cfg.Adapters {
		if err := d.addAdapter(i); err != nil {
			err = fmt.Errorf("adapter %q at %v: %w", a.Name, netip.AddrPortFrom(a.Address, a.UDPPort), err)
			d.events.Raise(d.running[i].Generation, events.AdapterStartFailed{Adapter: a.Name, Cause: err})
			return err
		}
	}
	return nil
}

// addAdapter adds adapter i with what the configuration and the registry say.
func (d *Driver) addAdapter(i int) error {
	a, r := d.cfg.Adapters[i], &d.running[i]
	path, _ := parsePath(a.Path) // Complete has checked it
	k := d.keys(i)
	index, err := d.host.AddAdapter(device.AdapterConfig{
		Name: a.Name, Addr: a.Address, FollowInterface: a.FollowInterface, Path: path, ReceiveBuffer: a.ReceiveBuffer,
		UDPPort: k.UDPPort, Disabled: true,
	})
	if err != nil {
		return err
	}
	d.tellIdentity(index)
	if err := d.setUp(index, a); err != nil {
		return err
	}
	if r.disabled {
		return nil
	}
	return d.enable(i, k)
}

// enable enables adapter i with these settings. What the link cannot carry is refused, with its event, and the
// manuals' fallback taken: the largest frame that fits, the best mode that the link has (WinOF-2 1.21, RoCE).
func (d *Driver) enable(i int, k keys) error {
	r := &d.running[i]
	mode, wanted := k.RoCE, k.RoCE
	if !k.rdma {
		d.events.Raise(r.Generation, events.RoCEMode{Adapter: r.Name, Mode: "none"})
		r.off = true // the device stays disabled
		return nil
	}
	err := d.host.Configure(uint32(i), k.Settings)
	if isUnsupported(err) && mode != device.RoCEv2 {
		k.RoCE = device.RoCEv2
		d.log.Warn("the RoCE mode is refused", "adapter", r.Name, "mode", pick(roceNames[:], wanted), "cause", err, "used", pick(roceNames[:], k.RoCE))
		d.events.Raise(r.Generation, events.RoCEModeRefused{
			Adapter: r.Name, Mode: pick(roceNames[:], wanted), Cause: err, Used: pick(roceNames[:], k.RoCE),
		})
		err = d.host.Configure(uint32(i), k.Settings)
	}
	var wrong *device.FrameSizeError
	if k.fromRegistry && errors.As(err, &wrong) {
		d.log.Warn("RoceMaxFrameSize is refused", "adapter", r.Name, "problem", err)
		d.events.Raise(r.Generation, events.RegistryValueIgnored{
			Key: r.Class().String() + `\RoceMaxFrameSize`, Value: fmt.Sprint(wrong.Size), Allowed: fmt.Sprintf("up to %d on this link", wrong.Most), Used: fmt.Sprint(wrong.Most),
		})
		k.RoceMaxFrameSize = 0
		err = d.host.Configure(uint32(i), k.Settings)
	}
	if err != nil {
		return err
	}
	if err := d.host.SetAdapterState(uint32(i), true); err != nil {
		return err
	}
	d.events.Raise(r.Generation, events.AdapterStarted{Adapter: r.Name, Address: d.cfg.Adapters[i].Address})
	d.events.Raise(r.Generation, events.RoCEMode{Adapter: r.Name, Mode: pick(roceNames[:], k.RoCE)})
	return nil
}

func isUnsupported(err error) bool {
	var e *command.Error
	return errors.As(err, &e) && e.Code == command.Unsupported
}

// SetAdapter enables or disables an adapter while programs use it (WinOF manual
// 4.11.2). Enabling takes up the keys as they are now.
func (d *Driver) SetAdapter(q AdapterRequest) error {
	index, err := d.find(q.Adapter)
	if err != nil {
		return err
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	r := &d.running[index]
	if d.enabled(index) == q.Enable {
		return nil
	}
	if !q.Enable {
		return d.disable(r, index)
	}
	if err := d.enableWithKeys(r, index); err != nil {
		return err
	}
	d.events.Raise(r.Generation, events.AdapterEnabled{Adapter: r.Name})
	return nil
}

// enabled says whether the adapter is, by whomever: programs can do it too.
func (d *Driver) enabled(index uint32) bool {
	return d.running[index].off || d.host.Counters()[index].Enabled
}

func (d *Driver) disable(r *running, index uint32) error {
	if err := d.host.SetAdapterState(index, false); err != nil {
		return err
	}
	r.off = false
	d.events.Raise(r.Generation, events.AdapterDisabled{Adapter: r.Name})
	return nil
}

// enableWithKeys enables an adapter with its keys as they are now.
func (d *Driver) enableWithKeys(r *running, index uint32) error {
	d.take(int(index))
	if err := d.enable(int(index), d.keys(int(index))); err != nil {
		d.events.Raise(r.Generation, events.AdapterStartFailed{Adapter: r.Name, Cause: err})
		return err
	}
	d.host.SetGIDInterval(d.gidInterval())
	return nil
}

// RestartAdapter disables and enables an adapter, which takes up its keys; one that was disabled is enabled.
// Where it cannot start with them, it goes on with those that it had.
func (d *Driver) RestartAdapter(name string) error {
	index, err := d.find(name)
	if err != nil {
		return err
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	r := &d.running[index]
	taken, was := r.taken, d.enabled(index)
	if was {
		if err := d.disable(r, index); err != nil {
			return err
		}
	}
	if err := d.enableWithKeys(r, index); err != nil {
		r.taken = taken
		if was {
			err = errors.Join(err, d.enable(int(index), d.keys(int(index))))
		}
		return err
	}
	return nil
}

// keys are what the registry, and where it says nothing the configuration, say about an adapter.
type keys struct {
	device.Settings
	rdma         bool // RoCE is on
	fromRegistry bool // RoceMaxFrameSize is
}

// keys reads those of adapter i as it took them at its start.
func (d *Driver) keys(i int) keys {
	a, r := &d.cfg.Adapters[i], &d.running[i]
	k := keys{rdma: true, Settings: device.Settings{
		RoCE: device.RoCEv2, UDPPort: a.UDPPort, RoceMaxFrameSize: a.RoceMaxFrameSize, MaxCMRetries: a.MaxCMRetries,
		NoFlowControl: a.RoceRcE2EFlowControlEnable != nil && !*a.RoceRcE2EFlowControlEnable,
	}}
	switch n, _ := d.number(r, "roce_mode"); n {
	case 0:
		k.RoCE = device.RoCEv1
	case 5:
		k.RoCE = device.RoCEv125
	case 4:
		k.rdma = false
	}
	if n, stored := d.number(r, "roce_udp_dport"); stored {
		k.UDPPort = uint16(n)
	}
	if n, stored := d.number(r, "RoceMaxFrameSize"); stored {
		k.RoceMaxFrameSize, k.fromRegistry = uint32(n), true
	}
	if n, stored := d.number(r, "RoceRcE2EFlowControlEnable"); stored {
		k.NoFlowControl = n == 0
	}
	if n, stored := d.number(r, "MaxCMRetries"); stored {
		k.MaxCMRetries = int(n)
	}
	if n, stored := d.number(r, "LogNumQp"); stored {
		k.Limits.QP = 1 << n
	}
	return k
}

// number is a numeric setting that the adapter took at its start, and whether it is in the registry: the most
// specific place that has it, else the default of the least specific.
func (d *Driver) number(r *running, name string) (n uint64, stored bool) {
	for _, k := range catalogue.LookupFor(name, r.Target()) {
		s, ok := r.taken[r.Place(k).String()+`\`+k.Name]
		if !ok {
			continue
		}
		if n, _ = s.Number(); s.Stored && !s.Auto {
			return n, true
		}
	}
	return n, false
}
