package driver

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/link/impair"
)

// SetAdapter enables or disables an adapter while programs use it (WinOF manual
// 4.11.2).
func (d *Driver) SetAdapter(q AdapterRequest) error {
	index, err := d.find(q.Adapter)
	if err != nil {
		return err
	}
	return d.host.SetAdapterState(index, q.Enable)
}

// SetLink changes what the link of an adapter does to packets, and the path of
// its connections.
func (d *Driver) SetLink(q LinkRequest) error {
	index, err := d.find(q.Adapter)
	if err != nil {
		return err
	}
	if q.Path == nil && q.Impairment == nil {
		return &FieldError{"settings", "empty", "impairment, path"}
	}
	if q.Path != nil {
		policy, err := parsePath(*q.Path)
		if err != nil {
			return err
		}
		if err := d.host.SetPath(index, policy); err != nil {
			return err
		}
	}
	if q.Impairment == nil {
		return nil
	}
	now, err := d.host.Impairment(index)
	if err != nil {
		return err
	}
	next, err := now.Parse(*q.Impairment...)
	if err != nil {
		return err
	}
	return d.host.SetImpairment(index, next)
}

// setUp applies what of an adapter's configuration is set after it was added.
func (d *Driver) setUp(index uint32, a Adapter) error {
	set, err := impair.Impairment{}.Parse(a.Impairment)
	if err == nil && set.Enabled() {
		err = d.host.SetImpairment(index, set)
	}
	if err != nil {
		return err
	}
	if a.Disabled {
		return d.host.SetAdapterState(index, false)
	}
	return nil
}

// find returns the index of the adapter of that name.
func (d *Driver) find(name string) (uint32, error) {
	var names []string
	for i, a := range d.cfg.Adapters {
		if a.Name == name {
			return uint32(i), nil
		}
		names = append(names, fmt.Sprintf("%q", a.Name))
	}
	return 0, &FieldError{"adapter", fmt.Sprintf("%q", name), strings.Join(names, ", ")}
}
