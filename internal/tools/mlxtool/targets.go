package mlxtool

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// interfaces returns the adapters that the arguments name: one, or all without arguments.
func (r *run) interfaces(args []string) ([]*api.AdapterStatus, error) {
	if len(args) > 1 {
		return nil, r.usagef("unexpected argument %q", args[1])
	}
	if err := r.status(); err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return r.all(), nil
	}
	a, err := r.interfaceNamed(args[0])
	if err != nil {
		return nil, err
	}
	return []*api.AdapterStatus{a}, nil
}

// interfaceNamed returns the adapter of that name, of a generation that supports the command.
func (r *run) interfaceNamed(name string) (*api.AdapterStatus, error) {
	a, err := r.named(name)
	if err == nil && a.Class()&r.command.Generations == 0 {
		return nil, tool.ErrUnsupported
	}
	return a, err
}

// one returns the interface named by the first argument, and the remaining arguments.
func (r *run) one() (*api.AdapterStatus, []string, error) {
	if len(r.args) == 0 {
		return nil, nil, r.usagef("an interface name is missing")
	}
	if err := r.status(); err != nil {
		return nil, nil, err
	}
	a, err := r.interfaceNamed(r.args[0])
	return a, r.args[1:], err
}

func (r *run) all() []*api.AdapterStatus {
	out := make([]*api.AdapterStatus, len(r.driver.Adapters))
	for i := range r.driver.Adapters {
		out[i] = &r.driver.Adapters[i]
	}
	return out
}

// named returns the adapter of that name.
func (r *run) named(name string) (*api.AdapterStatus, error) {
	return r.driver.Adapter("interface name", name)
}

// locations returns the device identified by three numbers, and the remaining arguments; with optional and
// without arguments, all devices.
func (r *run) locations(optional bool) ([]api.Device, []string, error) {
	if len(r.args) == 0 && optional {
		if err := r.status(); err != nil {
			return nil, nil, err
		}
		return r.driver.Devices(), nil, nil
	}
	if len(r.args) < 3 {
		return nil, nil, r.usagef("%d numbers are given of the 3 of a PCI location", len(r.args))
	}
	var n [3]int
	for i := range n {
		v, err := strconv.ParseUint(r.args[i], 0, 16)
		if err != nil {
			return nil, nil, r.usagef("%q is not a number", r.args[i])
		}
		n[i] = int(v)
	}
	if err := r.status(); err != nil {
		return nil, nil, err
	}
	at := api.Location{Bus: n[0], Device: n[1], Function: n[2]}
	var there []string
	for _, d := range r.driver.Devices() {
		l := d.Location()
		if l == at {
			return []api.Device{d}, r.args[3:], nil
		}
		there = append(there, fmt.Sprintf("%d %d %d", l.Bus, l.Device, l.Function))
	}
	return nil, nil, &api.FieldError{Field: "PCI location", Value: strings.Join(r.args[:3], " "), Allowed: strings.Join(there, ", ")}
}

// device returns the device identified by exactly three numbers.
func (r *run) device() (api.Device, error) {
	found, rest, err := r.locations(false)
	if err != nil {
		return api.Device{}, err
	}
	return found[0], r.noMore(rest)
}

func (r *run) noMore(rest []string) error {
	if len(rest) > 0 {
		return r.usagef("unexpected argument %q", rest[0])
	}
	return nil
}

// perInterface creates a table for each requested interface.
func (r *run) perInterface(one func(*api.AdapterStatus) (table, error)) (report, error) {
	list, err := r.interfaces(r.args)
	if err != nil {
		return nil, err
	}
	return tables(list, one)
}

// tables creates a table for each adapter, or device.
func tables[T any](list []T, one func(T) (table, error)) (out report, err error) {
	for _, x := range list {
		t, err := one(x)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
