package mlxtool

import (
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/registry"
)

// parameters shows those inside the driver (WinOF 5.50, 5.5.3.9).
func (r *run) parameters() (report, error) {
	a, rest, err := r.one()
	if err == nil {
		err = r.noMore(rest)
	}
	if err != nil {
		return nil, err
	}
	return r.parametersOf(a)
}

// parametersOf returns the table of an interface's parameters: those of the driver are in force as they are set.
func (r *run) parametersOf(a *api.AdapterStatus) (report, error) {
	reg, err := r.client.LoadRegistry(r.ctx)
	if err != nil {
		return nil, err
	}
	g, set := a.Class(), reg.DriverParameters(a.Identity())
	t := table{Label: "Interface", Name: a.Name, Fields: []string{"Parameter", "Default", "Min", "Max", "Current"}}
	for _, p := range catalogue.ParametersFor(catalogue.DriverTool, g) {
		least, most := p.Limits(g)
		current, ok := set[p.Name]
		if !ok {
			current = p.Default.Number
		}
		t.add(p.Name, p.Default.Number, least, most, current)
	}
	return report{t}, nil
}

// modifyParameters changes parameters inside the driver, all or none.
func (r *run) modifyParameters() (report, error) {
	a, rest, err := r.one()
	if err != nil {
		return nil, err
	}
	if len(rest) == 0 || len(rest)%2 != 0 {
		return nil, r.usagef("want pairs of a parameter and its value")
	}
	reg, err := r.client.LoadRegistry(r.ctx)
	if err != nil {
		return nil, err
	}
	var changes []registry.Change
	for i := 0; i < len(rest); i += 2 {
		c, err := r.modified(a, rest[i], rest[i+1])
		if err != nil {
			return nil, err
		}
		if _, stored := reg.DriverParameters(a.Identity())[c.Value.Name]; c.Kind == registry.SetValue || stored {
			changes = append(changes, c)
		}
	}
	if len(changes) > 0 {
		if _, err := r.client.ChangeRegistry(r.ctx, changes, false); err != nil { // notices about keys do not concern parameters
			return nil, err
		}
	}
	return r.parametersOf(a)
}

// modified returns the change that gives a parameter a value.
func (r *run) modified(a *api.AdapterStatus, name, value string) (c registry.Change, err error) {
	p, ok := catalogue.LookupParameter(name)
	if !ok || p.Tool != catalogue.DriverTool {
		var names []string
		for _, p := range catalogue.ParametersFor(catalogue.DriverTool, a.Class()) {
			names = append(names, p.Name)
		}
		return c, r.usagef("%q is no parameter; there are %s", name, strings.Join(names, ", "))
	}
	if p.Status == catalogue.Inherent {
		r.env.Errorf("note: %s switches nothing: docs/registry.md says why", p.Name)
	}
	if strings.EqualFold(value, "default") {
		return a.Identity().Configure(p, nil)
	}
	n, err := p.Parse(value, a.Class())
	if err != nil {
		return c, r.usagef("%v, or default", err)
	}
	return a.Identity().Configure(p, &n)
}
