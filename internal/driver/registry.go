package driver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/lock"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/firmware"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/registry"
)

// running is the state of a running adapter.
type running struct {
	registry.Adapter          // its identity; what its port is may change: see known
	disabled         bool     // by the configuration, at the start
	protocol         portType // configured for its port at its last start; read with changes held
	// The following are changed by whoever changes adapters, and may be read at any time.
	port       atomic.Pointer[cabled]
	infiniBand atomic.Bool // it has the keys of an InfiniBand port
	off        atomic.Bool // enabled with RoCE off: the device itself is disabled
	parked     bool        // a team has its wire, or is about to; with changes held
	started
}

// started is what an adapter has read at its last start.
type started struct {
	// taken are its settings, by their location.
	taken map[string]registry.Setting
	// configuration is what mlxconfig has set for the device, firmware what its flash held, and effective both.
	configuration, effective map[string]uint64
	firmware                 firmware.Image
}

// cable returns that of the port, nil for an Ethernet port.
func (r *running) cable() cabled {
	if p := r.port.Load(); p != nil {
		return *p
	}
	return nil
}

func (r *running) setCable(c cabled) {
	if c == nil {
		r.port.Store(nil)
		return
	}
	r.port.Store(&c)
}

// known returns the adapter as the registry currently knows it.
func (r *running) known() registry.Adapter {
	a := r.Adapter
	a.InfiniBand = r.infiniBand.Load()
	return a
}

// settingID identifies the location of a setting, independent of its spelling.
func settingID(s *registry.Setting) string { return s.Path.String() + `\` + s.Key.Name }

// openRegistry opens the registry, and reports if nothing is kept or something was lost.
func (d *Driver) openRegistry() error {
	r, err := registry.Open(d.cfg.State)
	if errors.Is(err, registry.ErrLocked) {
		return fmt.Errorf("%w: %w", lock.ErrRunning, err)
	}
	if err != nil { // a failing disk does not keep the adapters down
		r = registry.NewVolatile(err.Error())
	}
	d.registry = r
	r.SetLineRate(d.lineRate)
	r.SetDamaged(func(g registry.Damage) {
		d.log.Error("the registry's file was damaged while the driver ran; it was written anew, and nothing is lost", "file", g.Path,
			"cause", g.Cause, "set aside as", g.Aside)
	})
	if why := r.Volatile(); why != "" {
		d.besides.Warn("nothing will be kept", "reason", why)
		d.events.Raise(0, events.NothingKept{What: "The registry", Directory: d.cfg.State, Cause: errors.New(why)})
	}
	if file, cause := r.SetAside(); file != "" {
		d.besides.Warn("the registry could not be read and was set aside; defaults are used", "file", file, "cause", cause)
		d.events.Raise(0, events.RegistrySetAside{Cause: cause, File: file})
	}
	for i, a := range d.cfg.Adapters {
		known, err := d.addKeys(i)
		if err != nil {
			d.forget(err)
			if known, err = d.addKeys(i); err != nil {
				return err
			}
		}
		d.running = append(d.running, &running{Adapter: known, disabled: a.Disabled})
		d.running[len(d.running)-1].infiniBand.Store(known.InfiniBand)
	}
	return nil
}

// addKeys creates the keys of adapter i; a device's are those of its first port.
func (d *Driver) addKeys(i int) (registry.Adapter, error) {
	a := &d.cfg.Adapters[i]
	if first := d.cfg.Slot(i).First; first != i {
		return d.registry.AddPort(a.Name, d.running[first].Adapter)
	}
	g, _ := config.ParseGeneration(a.Generation) // Complete has checked it
	return d.registry.AddAdapter(a.Name, g)
}

// lineRate returns the speed of an adapter's link in Mbit/s; 0 if it is not known.
func (d *Driver) lineRate(a registry.Adapter) uint64 {
	index, err := d.find(a.Name)
	if err != nil || d.host == nil {
		return 0
	}
	return d.host.Speed(index) / 1e6
}

// forget continues without a file that cannot be written, with its contents in memory.
func (d *Driver) forget(cause error) {
	d.registry = d.registry.Detach(cause.Error())
	d.besides.Warn("nothing will be kept", "reason", cause)
	d.events.Raise(0, events.NothingKept{What: "The registry", Directory: d.cfg.State, Cause: cause})
}

// take reads the settings of adapter i, which starts with them, and reports invalid ones.
func (d *Driver) take(i int) {
	r := d.running[i]
	taken := map[string]registry.Setting{}
	for _, s := range d.registry.Settings(r.known()) {
		taken[settingID(&s)] = s
		d.complain(r, &s)
	}
	image, problem := d.registry.Firmware(r.known())
	if problem != nil {
		d.besides.Warn("the flash holds no image; that of the factory is used", "adapter", r.Name, "cause", problem)
		d.events.Raise(r.Generation, events.RegistryValueIgnored{
			Key: r.Flash().String(), Value: "not an image", Allowed: "what flint burns: " + problem.Error(), Used: image.PSID,
		})
	}
	d.settings.Lock()
	defer d.settings.Unlock()
	r.started = started{
		taken: taken, configuration: d.registry.Configuration(r.known()), effective: d.registry.Effective(r.known()), firmware: image,
	}
}

// complain raises the event of a stored value that is not allowed.
func (d *Driver) complain(r *running, s *registry.Setting) {
	if s.Problem == nil {
		return
	}
	d.besides.Warn("a stored value is not allowed; the default is used", "key", s.Path, "value", s.Name, "problem", s.Problem)
	if mac, ok := d.groupAddress(r, s); ok {
		d.events.Raise(r.Generation, events.MulticastAddress{Adapter: r.Name, Address: mac})
		return
	}
	ignored := events.RegistryValueIgnored{Key: s.Path.String() + `\` + s.Name, Used: api.DefaultText(s.Key, r.Generation)}
	var wrong *catalogue.ValueError
	var excluded *catalogue.ConflictError
	switch {
	case errors.As(s.Problem, &wrong):
		ignored.Value, ignored.Allowed = wrong.Value, wrong.Allowed
	case errors.As(s.Problem, &excluded):
		ignored.Value, ignored.Allowed = "set", "0 while "+excluded.Other+" is set"
	}
	d.events.Raise(r.Generation, ignored)
}

// groupAddress returns the stored value of NetworkAddress if it is a multicast address, which has an event
// of its own (WinOF-2 1.21, 5.5).
func (d *Driver) groupAddress(r *running, s *registry.Setting) (mac string, ok bool) {
	if s.Key.Form != catalogue.UnicastMAC || r.Generation != catalogue.MLX5 {
		return "", false
	}
	v, _ := d.registry.Get(s.Path, s.Name)
	text, _ := v.Text()
	return text, stationAddress(text)[0]&1 != 0
}

// Registry returns the driver's registry, for reading.
func (d *Driver) Registry() *registry.Registry { return d.registry }

// ChangeRegistry makes changes, all or none, and applies keys that take effect at once. If unchecked,
// values that the catalogue does not allow are stored too, but the default is used instead.
func (d *Driver) ChangeRegistry(changes []registry.Change, unchecked bool) ([]registry.Notice, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	return d.changeRegistry(changes, unchecked)
}

// changeRegistry is ChangeRegistry for callers that hold changes.
func (d *Driver) changeRegistry(changes []registry.Change, unchecked bool) ([]registry.Notice, error) {
	var notices []registry.Notice
	if !unchecked {
		var err error
		if notices, err = d.registry.Check(changes); err != nil {
			return nil, err
		}
	}
	before, parameters := make([]map[string]registry.Setting, len(d.running)), make([]map[string]uint64, len(d.running))
	for i, r := range d.running {
		before[i], parameters[i] = d.dynamic(i), d.registry.DriverParameters(r.known())
	}
	if err := d.registry.Apply(changes...); err != nil {
		return nil, err
	}
	for i, r := range d.running {
		d.follow(i, before[i], !maps.Equal(parameters[i], d.registry.DriverParameters(r.known())))
	}
	return append(notices, d.lost(changes)...), nil
}

// lost returns notices that the values set, or else the first change, are only kept in memory, if that is
// so.
func (d *Driver) lost(changes []registry.Change) (notices []registry.Notice) {
	why := d.registry.Volatile()
	if why == "" {
		return nil
	}
	told := slices.DeleteFunc(slices.Clone(changes), func(c registry.Change) bool { return c.Kind != registry.SetValue })
	if len(told) == 0 {
		told = changes[:min(1, len(changes))]
	}
	for _, c := range told {
		name := c.Value.Name
		if c.Kind != registry.SetValue && c.Kind != registry.DeleteValue {
			name = c.Key.String()
		}
		notices = append(notices, registry.Notice{Path: c.Key, Name: name, Text: "is lost when the driver ends: " + why,
			Effect: "not kept"})
	}
	return notices
}

// dynamic returns the settings of adapter i that take effect at once.
func (d *Driver) dynamic(i int) map[string]registry.Setting {
	out := map[string]registry.Setting{}
	for _, s := range d.registry.Settings(d.running[i].known()) {
		if s.Key.Effect == catalogue.AtOnce {
			out[settingID(&s)] = s
		}
	}
	return out
}

// follow applies changed settings of adapter i that take effect at once. changed says that parameters of the driver are, too.
func (d *Driver) follow(i int, before map[string]registry.Setting, changed bool) {
	r := d.running[i]
	for id, now := range d.dynamic(i) {
		if was := before[id]; now.Text() != was.Text() || (now.Problem == nil) != (was.Problem == nil) {
			d.complain(r, &now)
			d.settings.Lock()
			r.taken[id] = now
			d.settings.Unlock()
			changed = true
		}
	}
	if !changed {
		return
	}
	d.healing.changed()
	d.requeue(uint32(i))
	d.followOffer(i)
	d.changeEthernet(i)
	d.followVXLAN(i)
	d.monitor(uint32(i), d.functionWatch.now())
	if err := d.changeCongestion(i); err != nil {
		d.log.Warn("congestion control does not follow its keys", "adapter", r.Name, "cause", err)
	}
	if err := ignoreUnsupported(d.followPriorities(i)); err != nil {
		d.log.Warn("the port does not follow its keys of priorities", "adapter", r.Name, "cause", err)
	}
}

// Settings returns the keys of an adapter with their values.
func (d *Driver) Settings(adapter string) ([]api.Setting, error) {
	index, err := d.find(adapter)
	if err != nil {
		return nil, err
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	r := d.running[index]
	var out []api.Setting
	for _, s := range d.registry.Settings(r.known()) {
		out = append(out, d.setting(r, s))
	}
	return out, nil
}

// setting returns a key of an adapter for the management interface.
func (d *Driver) setting(r *running, s registry.Setting) api.Setting {
	k := s.Key
	force, ok := r.taken[settingID(&s)]
	if !ok {
		force = s
	}
	out := api.Setting{
		Name: k.Name, Title: k.Title, Group: string(k.Group), Path: s.Path.String(), Type: k.Type.String(), Value: force.Text(),
		Automatic: force.Auto,
		Default:   api.DefaultText(k, r.Generation), Allowed: k.Allowed(), Choices: api.Choices(k), Unit: k.Unit, Effect: api.EffectName(k),
		Status: api.StatusName(k), UI: k.UI, Pending: pending(&s, &force), Description: k.Description,
	}
	if v, ok := d.registry.Get(s.Path, s.Name); ok {
		text := v.Show()
		if s.Problem == nil {
			text = k.Format(s.Value)
		}
		out.Stored = &text
	}
	if s.Problem != nil {
		out.Problem = s.Problem.Error()
	}
	return out
}

// pending reports whether the stored setting waits for a restart.
func pending(stored, force *registry.Setting) bool {
	return stored.Key.Effect == catalogue.AtRestart && stored.Key.Status == catalogue.Built && stored.Text() != force.Text()
}

// Set sets a key of an adapter, given by its name alone, from text; nil: back to the default. If both the
// adapter and the driver have the key, the adapter's is set.
func (d *Driver) Set(adapter, key string, value *string) ([]registry.Notice, error) {
	index, err := d.find(adapter)
	if err != nil {
		return nil, err
	}
	changes, err := d.running[index].known().SetKey(key, value)
	if err != nil {
		return nil, err
	}
	if len(changes) == 0 {
		return nil, api.Wrong("key", strconv.Quote(key), "a key of GET /adapters/{name}/settings")
	}
	return d.ChangeRegistry(changes, false)
}

// configuration returns the mlxconfig parameters of adapter i's device as they were when its ports started, each
// port with its own. The caller holds changes.
func (d *Driver) configuration(i int) map[string]uint64 {
	ports := d.portsOf(d.cfg.Slot(i))
	all := maps.Clone(d.running[ports[0]].configuration)
	for n, port := range ports[1:] {
		suffix := fmt.Sprint("_P", n+2)
		maps.DeleteFunc(all, func(name string, _ uint64) bool { return strings.HasSuffix(name, suffix) })
		for name, v := range d.running[port].configuration {
			if strings.HasSuffix(name, suffix) {
				all[name] = v
			}
		}
	}
	return all
}

// describe adds the registry's information to an adapter's status.
func (d *Driver) describe(s *AdapterStatus, wire link.State) {
	d.changes.Lock()
	defer d.changes.Unlock()
	r := d.running[s.Index]
	s.Wire = d.wireName(int(s.Index))
	s.Generation, s.Number = api.GenerationName(r.Generation), r.Number
	if r.off.Load() { // without RDMA the port has no GIDs, but is there
		s.Up = wire.Up
		s.Enabled, s.GIDs = true, []api.GIDStatus{}
	}
	if s.Up && d.portStatus(int(s.Index)) == nil {
		if s.Speed, s.Duplex = wire.Speed, "full"; wire.HalfDuplex {
			s.Duplex = "half"
		}
	}
	s.Configuration, s.Firmware = d.configuration(int(s.Index)), api.FirmwareOf(&r.firmware)
	s.InfiniBand, s.Protocols = d.portStatus(int(s.Index)), d.cfg.Adapters[s.Index].Protocols()
	s.IPoIB = d.ipoibStatus(int(s.Index))
	if d.cfg.Adapters[s.Index].Host != "" {
		s.Ethernet = d.ethernetStatus(int(s.Index), d.host.Ethernet(s.Index))
	}
	if len(s.IPoIB) > 0 {
		s.MAC = s.IPoIB[0].MAC
	}
	s.SRIOV, s.VMQ, s.Functions = d.sriovStatus(s.Index), d.vmqStatus(s.Index), d.functionStatus(s.Index)
	s.VLANs = d.vlanStatus(int(s.Index))
	at := d.cfg.Slot(int(s.Index))
	s.Device, s.Port, s.Ports = d.running[at.First].Name, at.Port, at.Ports
	s.DeviceName, s.DeviceNumber = at.Device, d.running[at.First].Number
	s.Pending = d.portType(int(s.Index)) != r.protocol
	for _, now := range d.registry.Settings(r.known()) {
		if strings.HasPrefix(now.Key.Name, portTypeKey) {
			continue // of two ports: each waits for its own restart
		}
		if force, ok := r.taken[settingID(&now)]; ok && pending(&now, &force) {
			s.Pending = true
			return
		}
	}
}
