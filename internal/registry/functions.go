package registry

import "strings"

// Function is what is kept of a virtual function.
type Function struct {
	Name string
	// Created says that it was created by command: the others are there because the device's configuration has them.
	Created  bool
	Settings []string // what was set, as NAME=VALUE
}

// Values of a virtual function's key, which has its name. The manuals have none: their virtual functions are set by the hypervisor,
// which keeps that with the guest.
const (
	virtualFunctions = "VirtualFunctions"
	valueCreated     = "Created"
	valueSettings    = "Settings"
)

// Functions returns the key that holds what is kept of the virtual functions at an adapter's port.
func (a Adapter) Functions() Path { return a.Class().Child(virtualFunctions) }

// Functions returns what is kept of the virtual functions of an adapter, by name. Keys that describe none are skipped.
func (r *Registry) Functions(a Adapter) (list []Function) {
	k, _ := r.Key(a.Functions())
	for _, p := range k.Subkeys {
		settings, _ := r.Get(p, valueSettings)
		words, ok := settings.List()
		if !ok {
			continue
		}
		created, _ := r.Get(p, valueCreated)
		n, _ := created.Number()
		list = append(list, Function{Name: p.Name(), Created: n != 0, Settings: words})
	}
	return list
}

// Function returns what is kept of a virtual function; ok is false if nothing is.
func (r *Registry) Function(a Adapter, name string) (f Function, ok bool) {
	for _, f := range r.Functions(a) {
		if strings.EqualFold(f.Name, name) {
			return f, true
		}
	}
	return f, false
}

// KeepFunction returns the changes that keep a virtual function, in place of what was kept of it.
func (a Adapter) KeepFunction(f Function) []Change {
	key, created := a.Functions().Child(f.Name), uint32(0)
	if f.Created {
		created = 1
	}
	return []Change{
		{Kind: SetValue, Key: key, Value: DWord(valueCreated, created)},
		{Kind: SetValue, Key: key, Value: Strings(valueSettings, f.Settings)},
	}
}

// ForgetFunction returns the change after which nothing is kept of a virtual function.
func (a Adapter) ForgetFunction(name string) Change {
	return Change{Kind: DeleteKey, Key: a.Functions().Child(name), Lenient: true}
}
