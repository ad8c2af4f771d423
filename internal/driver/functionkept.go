package driver

import (
	"errors"
	"maps"
	"slices"

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
		for _, kept := range d.registry.Functions(d.running[i].known()) {
			if !kept.Created {
				continue
			}
			if err := d.recallCreated(uint32(i), kept); err != nil {
				d.log.Warn("a virtual function that was created before is not there", "adapter", d.running[i].Name, "function", kept.Name,
					"cause", err)
			}
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

// recall applies what is kept of a virtual function. What is not allowed, as its registry key was changed or a group is gone, is left
// out, and its link is down until somebody has looked at it: a tenant is not to get more than was decided.
func (d *Driver) recall(f *virtualFunction, kept registry.Function) {
	if f.set(kept.Settings) == nil {
		return
	}
	for _, word := range kept.Settings {
		if err := f.set([]string{word}); err != nil {
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
