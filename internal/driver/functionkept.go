package driver

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/registry"
)

// What is set of a virtual function is kept in the registry, below the class key of its adapter: all that were created by command, and
// of those that the device's configuration has what was changed. See docs/virtualization.md.

// words returns the settings that were given, as they can be given again.
func (f *virtualFunction) words() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(f.given)) {
		list = append(list, name+"="+f.given[name])
	}
	return list
}

// keepFunction keeps a virtual function for the next start. The caller holds changes.
func (d *Driver) keepFunction(f *virtualFunction) error {
	a := d.running[f.cfg.Owner].known()
	return d.registry.Apply(a.KeepFunction(registry.Function{Name: f.cfg.Name, Created: !f.byKeys, Settings: f.words()})...)
}

// forgetFunction keeps nothing of a virtual function any more. The caller holds changes.
func (d *Driver) forgetFunction(f *virtualFunction) error {
	return d.registry.Apply(d.running[f.cfg.Owner].known().ForgetFunction(f.cfg.Name))
}

// recallFunctions makes those virtual functions of all adapters again that were created by command. They start with their adapters. The
// caller holds changes.
func (d *Driver) recallFunctions() {
	for i := range d.running {
		d.recallFunctionsOf(uint32(i))
	}
}

// recallFunctionsOf makes those of one adapter that are not there.
func (d *Driver) recallFunctionsOf(i uint32) {
	r := d.running[i]
	for _, kept := range d.registry.Functions(r.known()) {
		if o := d.functions.find(kept.Name); !kept.Created || o != nil && o.cfg.Owner == i {
			continue
		}
		if err := d.recallCreated(i, kept); err != nil {
			d.log.Warn("a virtual function that was created before is not there", "adapter", r.Name, "function", kept.Name, "cause", err)
		}
	}
}

func (d *Driver) recallCreated(i uint32, kept registry.Function) error {
	if err := d.freeName(kept.Name); err != nil {
		return err
	}
	if err := d.roomForFunction(i); err != nil {
		return err
	}
	f := &virtualFunction{decision: decision{cfg: device.FunctionConfig{Owner: i, Name: kept.Name}}}
	d.recall(f, kept)
	d.identify(f)
	d.functions.add(f)
	return nil
}

// recallKind makes the virtual functions of adapter i what they are at a port of the other kind, InfiniBand's or Ethernet's, which it has
// become while it was disabled. Where a port has no room for them they wait. The caller holds changes.
func (d *Driver) recallKind(i uint32) {
	for _, f := range d.functions.of(i) {
		kept, ok := d.registry.Function(d.running[i].known(), f.cfg.Name)
		if f.byKeys || !ok {
			continue
		}
		d.functions.remove(f)
		host := f.host
		f.decision = decision{cfg: device.FunctionConfig{Owner: i, Name: kept.Name}}
		d.recall(f, kept)
		d.identify(f)
		d.functions.add(f)
		d.releaseHost(host)
	}
	d.recallFunctionsOf(i)
}

// recall applies what is kept of a virtual function. What is not allowed, as its registry key was changed or a group is gone, is left
// out, and its link is down until somebody has looked at it: a tenant is not to get more than was decided.
func (d *Driver) recall(f *virtualFunction, kept registry.Function) {
	words := slices.DeleteFunc(slices.Clone(kept.Settings), func(w string) bool { // it has another identity at a port of the other kind
		name, _, _ := strings.Cut(w, "=")
		return (name == "mac" || name == "guid") && d.suits(f.cfg.Owner, []string{w}) != nil
	})
	if d.suits(f.cfg.Owner, words) == nil && f.set(words) == nil {
		return
	}
	for _, word := range words {
		err := d.suits(f.cfg.Owner, []string{word})
		if err == nil {
			err = f.set([]string{word})
		}
		if err != nil {
			d.refuseKept(f, word, err)
		}
	}
	f.cfg.Virtual.Link = device.LinkDown
	f.give("link", "down")
}

// refuseKept tells of a setting that is kept and not allowed.
func (d *Driver) refuseKept(f *virtualFunction, word string, cause error) {
	r := d.running[f.cfg.Owner]
	d.log.Warn("a setting of a virtual function is not allowed; its link is down", "adapter", r.Name, "function", f.cfg.Name, "cause", cause)
	ignored := events.RegistryValueIgnored{Key: r.known().Functions().Child(f.cfg.Name).String() + `\Settings`, Value: word,
		Allowed: cause.Error(), Used: "link=down"}
	var wrong *api.FieldError
	if errors.As(cause, &wrong) {
		ignored.Allowed = wrong.Allowed
	}
	d.events.Raise(r.Generation, ignored)
}
