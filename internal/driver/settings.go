package driver

import (
	"fmt"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/link/impair"
)

// SetLink changes what the link of an adapter does to packets, and the path of its connections: both or,
// if one is invalid, neither.
func (d *Driver) SetLink(q LinkRequest) error {
	index, err := d.find(q.Adapter)
	if err != nil {
		return err
	}
	if q.Path == nil && q.Impairment == nil {
		return api.Wrong("settings", "empty", "impairment, path")
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	if q.Path != nil {
		if _, err := config.ParsePath(*q.Path); err != nil {
			return err
		}
	}
	if q.Impairment != nil {
		now, err := d.host.Impairment(index)
		if err != nil {
			return err
		}
		next, err := now.Parse(*q.Impairment...)
		if err != nil {
			return err
		}
		if err := d.host.SetImpairment(index, next); err != nil {
			return err
		}
	}
	if q.Path == nil {
		return nil
	}
	policy, _ := config.ParsePath(*q.Path) // checked above
	return d.host.SetPath(index, policy)
}

// setUp applies the parts of an adapter's configuration that are set after it was added.
func (d *Driver) setUp(index uint32, a config.Adapter) error {
	set, err := impair.Impairment{}.Parse(a.Impairment)
	if err == nil && set.Enabled() {
		err = d.host.SetImpairment(index, set)
	}
	return err
}

// gidInterval returns UpdateGIDTimerFrequency in the adapters' form: 0 the default, negative never. The
// registry overrides the configuration; if adapters of both generations run, the shorter interval is used.
func (d *Driver) gidInterval() time.Duration {
	shortest, stored := uint64(0), false
	for i := range d.running {
		n, ok := d.running[i].number("UpdateGIDTimerFrequency")
		if ok && (!stored || n != 0 && (n < shortest || shortest == 0)) {
			shortest, stored = n, true
		}
	}
	switch {
	case !stored:
		return d.cfg.GIDInterval()
	case shortest == 0:
		return -1
	}
	return time.Duration(shortest) * time.Millisecond
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
	return 0, api.Wrong("adapter", fmt.Sprintf("%q", name), strings.Join(names, ", "))
}
