package cmdlets

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// feature is something of adapters that Enable-, Disable-, Get- and Set-NetAdapterX concern, and the keys that switch it.
type feature struct {
	name string // X
	what string
	// keys that switch it, and those by IP version that -IPv4 and -IPv6 choose.
	keys, v4, v6 []string
	on           string // the value that switches on
	settings     []featureSetting
	dontGet      bool // Get- is another command
	// also adds to what Get- shows of an adapter; nil: nothing.
	also func(*powershell.Object, *api.AdapterStatus)
	// switched says what Enable- does not bring about at an adapter; nil: nothing.
	switched func(*run, *api.AdapterStatus) error
}

// featureSetting is a parameter of Set-NetAdapterX with its key.
type featureSetting struct {
	param string
	key   string
	max   int64
	help  string
}

var featureTable = []feature{
	{name: "Qos", what: "quality of service", keys: []string{"*QOS"}, dontGet: true},
	{name: "Rdma", what: "NetworkDirect", keys: []string{"*NetworkDirect"}},
	{name: "Rss", what: "receive side scaling", keys: []string{"*RSS"}, settings: []featureSetting{
		{"NumberOfReceiveQueues", "*NumRSSQueues", 64, "How many queues."}, {"MaxProcessors", "*MaxRSSProcessors", 64, "How many processors."},
		{"BaseProcessorNumber", "*RssBaseProcNumber", 1023, "The first processor."}, {"MaxProcessorNumber", "*RssMaxProcNumber", 1023, "The last one."}}},
	{name: "Sriov", what: "SR-IOV", keys: []string{"*SRIOV"}, settings: []featureSetting{{"NumVFs", "*NumVFs", 127, "How many virtual functions."}},
		also: granted},
	{name: "Vmq", what: "virtual machine queues", keys: []string{"*VMQ"}, settings: []featureSetting{
		{"BaseProcessorNumber", "*RssBaseProcNumber", 1023, "The first processor."}, {"MaxProcessors", "*MaxRSSProcessors", 64, "How many processors."}},
		also: vmqState, switched: vmqOn},
	{name: "Lso", what: "large send offload", v4: []string{"*LsoV2IPv4", "*LsoV1IPv4"}, v6: []string{"*LsoV2IPv6"}},
	{name: "Rsc", what: "receive segment coalescing", v4: []string{"*RscIPv4"}, v6: []string{"*RscIPv6"}},
	{name: "ChecksumOffload", what: "checksum offload", v4: []string{"*IPChecksumOffloadIPv4", "*TCPUDPChecksumOffloadIPv4"},
		v6: []string{"*TCPUDPChecksumOffloadIPv6"}, on: "3"},
	{name: "EncapsulatedPacketTaskOffload", what: "offload for encapsulated packets", keys: []string{"*EncapsulatedPacketTaskOffload"}},
	{name: "PacketDirect", what: "PacketDirect", keys: []string{"*PacketDirect"}},
}

func features() (out []cmdlet) {
	for _, f := range featureTable {
		f.on = map[bool]string{true: "1", false: f.on}[f.on == ""]
		out = append(out, f.cmdlets()...)
	}
	return append(out, vmqViews()...)
}

func (f *feature) cmdlets() (out []cmdlet) {
	add := func(verb, help string, changes bool, do func(*run) error, params ...powershell.Param) {
		if len(f.v4) > 0 {
			params = append(params, powershell.Param{Name: "IPv4", Kind: powershell.Switch, Help: "Only of IPv4."},
				powershell.Param{Name: "IPv6", Kind: powershell.Switch, Help: "Only of IPv6."})
		}
		c := powershell.Cmdlet{Name: verb + "-NetAdapter" + f.name, Help: help, Changes: changes, Params: params}
		out = append(out, cmdlet{c, do})
	}
	g := *f
	if !f.dontGet {
		add("Get", "Show "+f.what+" of adapters.", false, func(r *run) error { return r.getFeature(&g) }, adapterName(false))
	}
	add("Enable", "Switch on "+f.what+" of adapters.", true, func(r *run) error { return r.switchFeature(&g, true) }, adapterName(true), noRestart())
	add("Disable", "Switch off "+f.what+" of adapters.", true, func(r *run) error { return r.switchFeature(&g, false) }, adapterName(true), noRestart())
	set := []powershell.Param{adapterName(true), {Name: "Enabled", Kind: powershell.Bool, Help: "Whether it is on."}, noRestart()}
	for _, s := range f.settings {
		set = append(set, powershell.Param{Name: s.param, Kind: powershell.Number, Max: s.max, Help: s.help})
	}
	add("Set", "Set "+f.what+" of adapters.", true, func(r *run) error { return r.setFeature(&g) }, set...)
	return out
}

// chosen returns the keys that -IPv4 and -IPv6 choose; all without them.
func (f *feature) chosen(r *run) []string {
	keys := slices.Clone(f.keys)
	if r.Bool("IPv4") || !r.Bool("IPv6") {
		keys = append(keys, f.v4...)
	}
	if r.Bool("IPv6") || !r.Bool("IPv4") {
		keys = append(keys, f.v6...)
	}
	return keys
}

func (r *run) switchFeature(f *feature, on bool) error {
	value := "0"
	if on {
		value = f.on
	}
	changes := map[string]string{}
	for _, k := range f.chosen(r) {
		changes[k] = value
	}
	if err := r.changeKeys(f, changes); err != nil || !on || f.switched == nil {
		return err
	}
	list, err := r.named()
	for _, a := range list {
		if err := f.switched(r, a); err != nil {
			return err
		}
	}
	return err
}

func (r *run) setFeature(f *feature) error {
	changes := map[string]string{}
	if r.Given("Enabled") {
		for _, k := range f.chosen(r) {
			changes[k] = map[bool]string{true: f.on, false: "0"}[r.Bool("Enabled")]
		}
	}
	allowed := []string{"-Enabled"}
	for _, s := range f.settings {
		allowed = append(allowed, "-"+s.param)
		if r.Given(s.param) {
			changes[s.key] = strconv.FormatInt(r.Number(s.param), 10)
		}
	}
	if len(changes) == 0 {
		return &powershell.ParameterError{Parameter: "what to set is missing", Allowed: strings.Join(allowed, ", ")}
	}
	return r.changeKeys(f, changes)
}

// changeKeys sets keys of the adapters, those that they have, and restarts them if that is needed.
func (r *run) changeKeys(f *feature, changes map[string]string) error {
	list, err := r.featured(f, changes)
	if err != nil {
		return err
	}
	for _, a := range list {
		settings, err := r.driver.Settings(r.Context, a.Name)
		if err != nil {
			return err
		}
		restart, found := false, false
		for _, key := range sortedKeys(changes) {
			i := slices.IndexFunc(settings, func(s api.Setting) bool { return strings.EqualFold(s.Name, key) })
			if i < 0 {
				continue
			}
			if found = true; !r.Should(r.Cmdlet.Name, a.Name) {
				break
			}
			value := changes[key]
			needs, err := r.setKey(a, key, &value)
			if err != nil {
				return err
			}
			restart = restart || needs
		}
		if !found {
			return fmt.Errorf("%w: adapter %q has no %s", api.ErrUnsupported, a.Name, f.what)
		}
		if restart {
			if err := r.restart(a); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) getFeature(f *feature) error {
	list, err := r.featured(f, nil)
	if err != nil {
		return err
	}
	for _, a := range list {
		settings, err := r.driver.Settings(r.Context, a.Name)
		if err != nil {
			return err
		}
		value := func(key string) (string, bool) {
			i := slices.IndexFunc(settings, func(s api.Setting) bool { return strings.EqualFold(s.Name, key) })
			if i < 0 {
				return "", false
			}
			return settings[i].Value, true
		}
		o := powershell.NewObject("MSFT_NetAdapter"+f.name+"SettingData").With("Name", a.Name)
		known := false
		add := func(name string, keys []string) {
			if len(keys) == 0 {
				return
			}
			v, ok := value(keys[0])
			known = known || ok
			o.With(name, ok && v != "0")
		}
		add("Enabled", f.keys)
		add("IPv4Enabled", f.v4)
		add("IPv6Enabled", f.v6)
		for _, s := range f.settings {
			if v, ok := value(s.key); ok {
				n, _ := strconv.ParseInt(v, 10, 64)
				o.With(s.param, n)
			}
		}
		if !known {
			continue // adapters without it are not listed
		}
		if f.also != nil {
			f.also(o, a)
		}
		o.Show = nil
		r.Emit(o)
	}
	return nil
}

// granted says what the device's configuration grants of SR-IOV, as Get-NetAdapterSriov does (WinOF-2 24.4, Verifying Sufficient
// Resources are Available in the Adapter to Enable SR-IOV VFs).
func granted(o *powershell.Object, a *api.AdapterStatus) {
	if v := a.SRIOV; v != nil {
		o.With("SriovSupport", v.Support).With("GrantedVFs", int64(v.Granted)).With("Cause", v.Cause)
	}
}
