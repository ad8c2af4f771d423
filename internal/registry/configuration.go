package registry

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// Configuration returns the key of the device's non-volatile configuration, which mlxconfig changes. The
// manuals have no such key: a card keeps its configuration in its own memory.
func (a Adapter) Configuration() Path { return a.Device().Child("Configuration") }

// Configuration returns the parameters that are set in an adapter's non-volatile configuration, by their
// names in the catalogue. Those with a value that is not allowed count as not set.
func (r *Registry) Configuration(a Adapter) map[string]uint64 {
	set := map[string]uint64{}
	k, _ := r.Key(a.Configuration())
	for _, v := range k.Values {
		if p, n, err := a.parameter(v); err == nil {
			set[p.Name] = n
		}
	}
	return set
}

// parameter returns the parameter that a value of the Configuration key sets. The error says why it sets
// none.
func (a Adapter) parameter(v Value) (catalogue.Parameter, uint64, error) {
	for _, p := range catalogue.ParametersFor(catalogue.ConfigTool, a.Generation) {
		if !strings.EqualFold(p.Name, v.Name) {
			continue
		}
		n, ok := v.Number()
		if !ok {
			return p, 0, &catalogue.ValueError{Key: p.Name, Value: "a " + v.Type.String(), Allowed: p.Allowed(a.Generation)}
		}
		return p, n, p.Validate(n, a.Generation)
	}
	return catalogue.Parameter{}, 0, fmt.Errorf("%q is not a parameter of the device", v.Name)
}

// Configure returns the change that sets a parameter; nil: back to the default. Errors are
// *catalogue.ValueError.
func (a Adapter) Configure(p catalogue.Parameter, n *uint64) (Change, error) {
	if n == nil {
		return Change{Kind: DeleteValue, Key: a.Configuration(), Value: Value{Name: p.Name}, Lenient: true}, nil
	}
	return Change{Kind: SetValue, Key: a.Configuration(), Value: DWord(p.Name, uint32(*n))}, p.Validate(*n, a.Generation)
}
