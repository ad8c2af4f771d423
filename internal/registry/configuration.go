package registry

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/firmware"
)

// Configuration returns the key of the device's non-volatile configuration, which mlxconfig changes. The
// manuals have no such key: a card keeps its configuration in its own memory.
func (a Adapter) Configuration() Path { return a.Device().Child("Configuration") }

// Configuration returns the parameters that are set in an adapter's non-volatile configuration, by their
// names in the catalogue. Those with a value that is not allowed count as not set.
func (r *Registry) Configuration(a Adapter) map[string]uint64 {
	return r.parameters(a, catalogue.ConfigTool)
}

// DriverParameters returns those of an adapter that mlxtool modify driverparams has set, likewise.
func (r *Registry) DriverParameters(a Adapter) map[string]uint64 {
	return r.parameters(a, catalogue.DriverTool)
}

// parametersOf returns the key of the parameters that a tool shows. The manuals have none for those of the driver either.
func (a Adapter) parametersOf(tool string) Path {
	if tool == catalogue.DriverTool {
		return a.Class().Child("DriverParameters")
	}
	return a.Configuration()
}

func (r *Registry) parameters(a Adapter, tool string) map[string]uint64 {
	set := map[string]uint64{}
	k, _ := r.Key(a.parametersOf(tool))
	for _, v := range k.Values {
		if p, n, err := a.parameter(tool, v); err == nil {
			set[p.Name] = n
		}
	}
	return set
}

// parameter returns the parameter of a tool that a value of its key sets. The error says why it sets none.
func (a Adapter) parameter(tool string, v Value) (catalogue.Parameter, uint64, error) {
	for _, p := range catalogue.ParametersFor(tool, a.Generation) {
		if !strings.EqualFold(p.Name, v.Name) {
			continue
		}
		n, ok := v.Number()
		if !ok {
			return p, 0, &catalogue.ValueError{Key: p.Name, Value: "a " + v.Type.String(), Allowed: p.Allowed(a.Generation)}
		}
		return p, n, p.Validate(n, a.Generation)
	}
	return catalogue.Parameter{}, 0, fmt.Errorf("%q is not a parameter of %s", v.Name, tool)
}

// hostAddresses is the value that keeps the IP addresses of the interface of an adapter's host, which goes away with the driver.
const hostAddresses = "HostAddresses"

// HostAddresses returns the addresses that KeepHostAddresses has kept; what is none is left out.
func (r *Registry) HostAddresses(a Adapter) (list []netip.Prefix) {
	v, _ := r.Get(a.Class(), hostAddresses)
	texts, _ := v.List()
	for _, t := range texts {
		if p, err := netip.ParsePrefix(t); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// KeepHostAddresses returns the change that keeps addresses for the next start of the driver.
func (a Adapter) KeepHostAddresses(list []netip.Prefix) Change {
	if len(list) == 0 {
		return Change{Kind: DeleteValue, Key: a.Class(), Value: Value{Name: hostAddresses}, Lenient: true}
	}
	var texts []string
	for _, p := range list {
		texts = append(texts, p.String())
	}
	return Change{Kind: SetValue, Key: a.Class(), Value: Strings(hostAddresses, texts)}
}

// Configure returns the change that sets a parameter; nil: back to the default. Errors are
// *catalogue.ValueError.
func (a Adapter) Configure(p catalogue.Parameter, n *uint64) (Change, error) {
	if n == nil {
		return Change{Kind: DeleteValue, Key: a.parametersOf(p.Tool), Value: Value{Name: p.Name}, Lenient: true}, nil
	}
	return Change{Kind: SetValue, Key: a.parametersOf(p.Tool), Value: DWord(p.Name, uint32(*n))}, p.Validate(*n, a.Generation)
}

// Flash returns the key of what the device's flash holds, which flint burns: a card has it in its own memory.
func (a Adapter) Flash() Path { return a.Device().Child("Flash") }

// flashImage is the value of the Flash key that holds the image.
const flashImage = "Image"

// Firmware returns the image in the flash of an adapter's device: the one of the factory if none was burned, or if what is
// there is none for this device; problem says so.
func (r *Registry) Firmware(a Adapter) (m firmware.Image, problem error) {
	v, ok := r.Get(a.Flash(), flashImage)
	if !ok {
		return firmware.Factory(a.Generation), nil
	}
	if v.Type != Binary {
		return firmware.Factory(a.Generation), fmt.Errorf("%s is a %v; allowed: %v", flashImage, v.Type, Binary)
	}
	m, err := firmware.Decode(v.Data)
	if err == nil && m.Generation != a.Generation {
		err = fmt.Errorf("the image is for device %d, not %d", m.Generation.PartID(), a.Generation.PartID())
	}
	if err != nil {
		return firmware.Factory(a.Generation), err
	}
	return m, nil
}

// Burn returns the change that writes an image, which must pass its Check, to the flash of the adapter's device.
func (a Adapter) Burn(m *firmware.Image) Change {
	return Change{Kind: SetValue, Key: a.Flash(), Value: Value{flashImage, Binary, m.Encode()}}
}

// Effective returns the parameters of an adapter's device that are set, or have a default in its firmware.
func (r *Registry) Effective(a Adapter) map[string]uint64 {
	m, _ := r.Firmware(a)
	all := maps.Clone(m.Parameters)
	if all == nil {
		all = map[string]uint64{}
	}
	maps.Copy(all, r.Configuration(a))
	return all
}
