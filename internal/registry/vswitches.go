package registry

// VirtualSwitch is what is kept of a virtual switch over an adapter.
type VirtualSwitch struct {
	Name    string
	Adapter string // by its name
	// IOV says that adapters of machines may be virtual functions (New-VMSwitch -EnableIov).
	IOV bool
	// PacketDirect lets programs of its adapters have queues of frames (New-VMSwitch -EnablePacketDirect), and VFP says that the filter
	// platform is at its ports (Enable-VMSwitchExtension).
	PacketDirect, VFP bool
	// Configured says that the driver's configuration has it: it goes when that has it no more.
	Configured bool
	Adapters   []SwitchAdapter // by the names of their functions
}

// SwitchAdapter is what is kept of a network adapter of a virtual switch: a function at the port of the switch's adapter, whose own
// settings are kept with that.
type SwitchAdapter struct {
	Function   string
	Configured bool
	Settings   []string // as NAME=VALUE
}

// Keys and values of virtual switches. The manuals have none: Hyper-V keeps its switches itself.
const (
	valueSwitchAdapter = "Adapter"
	valueIOV           = "EnableIov"
	valuePacketDirect  = "EnablePacketDirect"
	valueVFP           = "EnableVfp"
	valueConfigured    = "Configured"
	switchAdapters     = "Adapters"
)

var virtualSwitches = Path{ControlSet + `\Services\SoftVPI\VirtualSwitches`}

// VirtualSwitches returns what is kept of virtual switches, by name. Keys that describe none are skipped.
func (r *Registry) VirtualSwitches() (list []VirtualSwitch) {
	k, _ := r.Key(virtualSwitches)
	for _, p := range k.Subkeys {
		adapter, _ := r.Get(p, valueSwitchAdapter)
		name, ok := adapter.Text()
		if !ok {
			continue
		}
		s := VirtualSwitch{Name: p.Name(), Adapter: name, IOV: r.isSet(p, valueIOV),
			PacketDirect: r.isSet(p, valuePacketDirect), VFP: r.isSet(p, valueVFP), Configured: r.isSet(p, valueConfigured)}
		under, _ := r.Key(p.Child(switchAdapters))
		for _, a := range under.Subkeys {
			settings, _ := r.Get(a, valueSettings)
			if words, ok := settings.List(); ok {
				s.Adapters = append(s.Adapters, SwitchAdapter{Function: a.Name(), Configured: r.isSet(a, valueConfigured), Settings: words})
			}
		}
		list = append(list, s)
	}
	return list
}

// isSet reports whether a value is a number other than 0.
func (r *Registry) isSet(p Path, name string) bool {
	v, _ := r.Get(p, name)
	n, ok := v.Number()
	return ok && n != 0
}

func flag(name string, on bool) Value {
	if on {
		return DWord(name, 1)
	}
	return DWord(name, 0)
}

// Keep returns the changes that keep a virtual switch; what is kept of its adapters stays.
func (s *VirtualSwitch) Keep() []Change {
	key := virtualSwitches.Child(s.Name)
	return []Change{
		{Kind: SetValue, Key: key, Value: String(valueSwitchAdapter, s.Adapter)},
		{Kind: SetValue, Key: key, Value: flag(valueIOV, s.IOV)},
		{Kind: SetValue, Key: key, Value: flag(valuePacketDirect, s.PacketDirect)},
		{Kind: SetValue, Key: key, Value: flag(valueVFP, s.VFP)},
		{Kind: SetValue, Key: key, Value: flag(valueConfigured, s.Configured)},
	}
}

// Forget returns the change after which nothing is kept of a virtual switch and its adapters.
func (s *VirtualSwitch) Forget() Change {
	return Change{Kind: DeleteKey, Key: virtualSwitches.Child(s.Name), Lenient: true}
}

// KeepAdapter returns the changes that keep an adapter of the switch, in place of what was kept of it.
func (s *VirtualSwitch) KeepAdapter(a SwitchAdapter) []Change {
	key := virtualSwitches.Child(s.Name).Child(switchAdapters).Child(a.Function)
	return []Change{
		{Kind: SetValue, Key: key, Value: flag(valueConfigured, a.Configured)},
		{Kind: SetValue, Key: key, Value: Strings(valueSettings, a.Settings)},
	}
}

// ForgetAdapter returns the change after which nothing is kept of an adapter of the switch.
func (s *VirtualSwitch) ForgetAdapter(function string) Change {
	return Change{Kind: DeleteKey, Key: virtualSwitches.Child(s.Name).Child(switchAdapters).Child(function), Lenient: true}
}
