package reg

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/registry"
)

// target is what the arguments identify: a key and, if it was given just by a key of the catalogue, the
// value.
type target struct {
	key   registry.Path
	name  string         // of the value
	short *catalogue.Key // the catalogue's key, if only that was given
}

// target parses the KeyName.
func (a *arguments) target(reg *registry.Registry) (target, error) {
	name := a.names[0]
	root, _, path := strings.Cut(name, `\`)
	if path || strings.EqualFold(root, registry.Root) || strings.EqualFold(root, registry.ShortRoot) {
		if strings.HasPrefix(name, `\\`) {
			return target{}, wrongf("%s: the registry of another machine; allowed: this machine's", name)
		}
		if a.has("adapter") {
			return target{}, &syntaxError{a.operation, "--adapter goes only with the name of a key of this driver."}
		}
		p, err := registry.ParsePath(name)
		return target{key: p, name: a.value("v")}, err
	}
	if a.has("v") || a.has("ve") || a.has("va") {
		return target{}, &syntaxError{a.operation, fmt.Sprintf("%q is the name of a value already; /v, /ve and /va go with a path.", name)}
	}
	return a.short(reg, name)
}

// short finds the place of a key of the catalogue.
func (a *arguments) short(reg *registry.Registry, name string) (target, error) {
	if len(catalogue.Lookup(name)) == 0 {
		return target{}, wrongf("%q is not a key of this driver; allowed: one of its keys, or a path that begins with HKLM", name)
	}
	adapter, err := a.adapter(reg)
	if err != nil {
		return target{}, err
	}
	keys := catalogue.LookupFor(name, adapter.Target())
	if !a.has("adapter") { // only places common to all adapters
		var shared []catalogue.Key
		for _, k := range keys {
			if k.Base != catalogue.AdapterClass && k.Base != catalogue.DeviceClass {
				shared = append(shared, k)
			}
		}
		if len(keys) > 0 && len(shared) == 0 {
			return target{}, wrongf("%s is a key of each adapter; allowed: --adapter with one of %s", name, adapterNames(reg))
		}
		keys = shared
	}
	if len(keys) == 0 {
		return target{}, wrongf("an adapter of this generation has no key %s", name)
	}
	k := keys[0]
	return target{key: adapter.Place(k), name: spelling(k, name), short: &k}, nil
}

// spelling returns the key's name, or the alias that was given: an alias of several keys is a value of its
// own.
func spelling(k catalogue.Key, name string) string {
	if len(catalogue.Lookup(name)) > 0 && !strings.EqualFold(strings.TrimPrefix(k.Name, "*"), strings.TrimPrefix(name, "*")) {
		return name
	}
	return k.Name
}

// adapter returns the one given by --adapter, or a stand-in for what all have in common.
func (a *arguments) adapter(reg *registry.Registry) (registry.Adapter, error) {
	if !a.has("adapter") {
		if all := reg.Adapters(); len(all) > 0 {
			return all[0], nil
		}
		return registry.Adapter{Generation: catalogue.MLX5}, nil
	}
	found, ok := reg.Adapter(a.value("adapter"))
	if !ok {
		return found, wrongf("no adapter %q; allowed: %s", a.value("adapter"), adapterNames(reg))
	}
	return found, nil
}

func adapterNames(reg *registry.Registry) string {
	var names []string
	for _, x := range reg.Adapters() {
		names = append(names, fmt.Sprintf("%q", x.Name))
	}
	if len(names) == 0 {
		return "none: no driver has run with this state directory"
	}
	return strings.Join(names, ", ")
}
