package registry

import (
	"crypto/rand"
	"crypto/sha1"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// Adapter is an adapter as the registry identifies it.
type Adapter struct {
	Name       string // name of its connection: "Ethernet 1"
	Generation catalogue.Generation
	// Number is the <nn> of its keys among the network adapters, and DeviceNumber that of its device's among
	// the system devices: the Number of the adapter that is the device's first port.
	Number, DeviceNumber int
	// InfiniBand says that its port belongs to an InfiniBand fabric.
	InfiniBand bool
}

// Values of an adapter's class key that identify the adapter, as in Windows.
const (
	driverDesc   = "DriverDesc"
	providerName = "ProviderName"
	instanceID   = "NetCfgInstanceId"
	serviceName  = "Service"
	busPath      = "ParentBusRegPath"
	configFlags  = "ConfigFlags" // of its device
	ifType       = "*IfType"
)

// identity are the names of those values.
var identity = []string{driverDesc, providerName, instanceID, serviceName, busPath, configFlags, ifType}

const (
	networkClass = `{4d36e972-e325-11ce-bfc1-08002be10318}`
	systemClass  = `{4d36e97d-e325-11ce-bfc1-08002be10318}`
	maxNumber    = 9999
)

var (
	networkAdapters = Path{ControlSet + `\Control\Class\` + networkClass}
	systemDevices   = Path{ControlSet + `\Control\Class\` + systemClass}
	instances       = Path{ControlSet + `\Enum\ROOT\SOFTVPI`}
	networks        = Path{ControlSet + `\Control\Network\` + networkClass}
)

// Target returns the adapter in the form in which the catalogue looks up keys.
func (a Adapter) Target() catalogue.Target {
	return catalogue.Target{Generation: a.Generation, IPoIB: a.InfiniBand}
}

// Class returns the adapter's own key, the <nn> of the manuals.
func (a Adapter) Class() Path { return networkAdapters.Child(fmt.Sprintf("%04d", a.Number)) }

// Device returns the key of its device among the system devices (WinOF: the HCA).
func (a Adapter) Device() Path { return systemDevices.Child(fmt.Sprintf("%04d", a.DeviceNumber)) }

// place returns where the catalogue has a key of the adapter, or of its device.
func (a Adapter) place(k catalogue.Key) catalogue.Place {
	if k.Base == catalogue.DeviceClass {
		return k.Place(a.Generation, a.DeviceNumber)
	}
	return k.Place(a.Generation, a.Number)
}

// Adapters returns the adapters that have keys, sorted by number, including those no longer configured.
func (r *Registry) Adapters() []Adapter { return r.root.Load().adapters() }

func (n *node) adapters() []Adapter {
	class := n.find(networkAdapters)
	if class == nil {
		return nil
	}
	var out []Adapter
	for _, c := range class.sortedChildren() {
		number, err := strconv.Atoi(c.name)
		if err != nil || len(c.name) != 4 {
			continue
		}
		id, _ := c.values[fold(instanceID)].Text()
		if checkName(id) != "" {
			continue
		}
		connection := n.find(networks.Child(id).Child("Connection"))
		if connection == nil {
			continue
		}
		a := Adapter{Number: number, DeviceNumber: number, Generation: catalogue.MLX5}
		bus, _ := c.values[fold(busPath)].Text()
		if p, err := catalogue.ParsePath(bus); err == nil && p.Base == catalogue.DeviceClass {
			a.DeviceNumber = p.Number
		}
		if s, _ := c.values[fold(serviceName)].Text(); s == catalogue.MLX4.Driver() {
			a.Generation = catalogue.MLX4
		}
		kind, _ := c.values[fold(ifType)].Number()
		a.InfiniBand = kind == ifInfiniBand
		if a.Name, _ = connection.values["NAME"].Text(); a.Name != "" {
			out = append(out, a)
		}
	}
	return out
}

// Adapter finds an adapter by its name.
func (r *Registry) Adapter(name string) (Adapter, bool) {
	all := r.Adapters()
	i := slices.IndexFunc(all, func(a Adapter) bool { return a.Name == name })
	if i < 0 {
		return Adapter{}, false
	}
	return all[i], true
}

// AddAdapter creates the keys of the adapter with that name and of its device, so that it can be found as in
// Windows: by DriverDesc and NetCfgInstanceId in its class key, by the connection's name below
// Control\Network. An adapter keeps its number across restarts. If everything is already there, nothing is
// written.
func (r *Registry) AddAdapter(name string, g catalogue.Generation) (Adapter, error) {
	return r.addAdapter(name, g, nil)
}

// AddPort is AddAdapter for another port of an adapter's device, whose keys it shares.
func (r *Registry) AddPort(name string, first Adapter) (Adapter, error) {
	return r.addAdapter(name, first.Generation, &first)
}

func (r *Registry) addAdapter(name string, g catalogue.Generation, first *Adapter) (Adapter, error) {
	a, ok := r.Adapter(name)
	if !ok {
		a = Adapter{Name: name, Number: r.freeNumber()}
	}
	a.Generation, a.DeviceNumber = g, a.Number
	if first != nil {
		a.DeviceNumber = first.DeviceNumber
	}
	if a.Number > maxNumber {
		return a, fmt.Errorf("no number is left for adapter %q; allowed: %d adapters", name, maxNumber+1)
	}
	id := instance(name)
	return a, r.establish(
		a.description(),
		Change{Key: a.Class(), Value: String(providerName, "SoftVPI")},
		Change{Key: a.Class(), Value: String(instanceID, id)},
		Change{Key: a.Class(), Value: String(serviceName, g.Driver())},
		Change{Key: a.Class(), Value: String(busPath, ShortRoot+`\`+a.Device().s)},
		Change{Key: a.Device(), Value: String(driverDesc, fmt.Sprintf("SoftVPI %s", class(g)))},
		Change{Key: a.Device(), Value: String(providerName, "SoftVPI")},
		Change{Key: networks.Child(id).Child("Connection"), Value: String("Name", name)},
	)
}

// description returns the adapter's description by what its port is, as in Windows' Device Manager: "... Ethernet
// Adapter", or "... IPoIB Adapter" (WinOF 5.50, 4.2.4.1).
func (a Adapter) description() Change {
	kind := "Ethernet"
	if a.InfiniBand {
		kind = "IPoIB"
	}
	desc := fmt.Sprintf("SoftVPI %s %s Adapter", class(a.Generation), kind)
	if a.Number > 0 {
		desc += fmt.Sprintf(" #%d", a.Number+1)
	}
	return Change{Key: a.Class(), Value: String(driverDesc, desc)}
}

// establish sets values that are not set yet, all or nothing.
func (r *Registry) establish(values ...Change) error {
	var changes []Change
	for _, c := range values {
		if v, ok := r.Get(c.Key, c.Value.Name); !ok || !v.Equal(c.Value) {
			c.Kind = SetValue
			changes = append(changes, c)
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return r.Apply(changes...)
}

// ifInfiniBand is the type of InfiniBand interfaces (IANA ifType, 199), which Windows keeps in *IfType.
const ifInfiniBand = 199

// SetInfiniBand records whether an adapter's port belongs to an InfiniBand fabric, in its type and its description,
// and returns the updated adapter.
func (r *Registry) SetInfiniBand(a Adapter, is bool) (Adapter, error) {
	a.InfiniBand = is
	if is {
		return a, r.establish(Change{Key: a.Class(), Value: DWord(ifType, ifInfiniBand)}, a.description())
	}
	if _, stored := r.Get(a.Class(), ifType); !stored {
		return a, r.establish(a.description())
	}
	desc := a.description()
	desc.Kind = SetValue
	return a, r.Apply(desc, Change{Kind: DeleteValue, Key: a.Class(), Value: Value{Name: ifType}})
}

// disabledFlag is the bit of ConfigFlags by which Windows' Device Manager remembers that a device is
// disabled (CONFIGFLAG_DISABLED of regstr.h).
const disabledFlag = 1

// instance returns the key of the adapter's device in the device tree.
func (a Adapter) instance() Path { return instances.Child(fmt.Sprintf("%04d", a.Number)) }

// Disabled reports whether the adapter was permanently disabled, and whether anything is recorded about
// that.
func (r *Registry) Disabled(a Adapter) (disabled, known bool) {
	v, _ := r.Get(a.instance(), configFlags)
	n, known := v.Number()
	return n&disabledFlag != 0, known
}

// Disable returns the change that keeps an adapter disabled, or enabled, when the driver starts again.
func (a Adapter) Disable(disabled bool) Change {
	flags := uint32(0)
	if disabled {
		flags = disabledFlag
	}
	return Change{Kind: SetValue, Key: a.instance(), Value: DWord(configFlags, flags)}
}

// class describes the adapters of a generation.
func class(g catalogue.Generation) string {
	if g == catalogue.MLX4 {
		return "ConnectX-3 class VPI"
	}
	return "ConnectX-4 class"
}

// freeNumber returns the first number that no class key has.
func (r *Registry) freeNumber() int {
	for n := 0; ; n++ {
		a := Adapter{Number: n}
		if _, taken := r.Key(a.Class()); !taken || n > maxNumber {
			return n
		}
	}
}

// instance derives the GUID of an adapter's instance from its name (RFC 9562, version 5, without a name
// space).
func instance(name string) string {
	h := sha1.Sum([]byte("SoftVPI adapter " + name))
	h[6], h[8] = h[6]&0x0f|0x50, h[8]&0x3f|0x80
	return fmt.Sprintf("{%X-%X-%X-%X-%X}", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// FunctionGUID returns what identifies a virtual function by its name, in capitals or not, with its braces.
func FunctionGUID(name string) string {
	return instance("'s virtual function\x00" + strings.ToLower(name))
}

// NewGUID returns a random GUID (RFC 9562, version 4) in the form of Windows.
func NewGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // which never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("{%X-%X-%X-%X-%X}", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
