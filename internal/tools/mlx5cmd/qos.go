package mlx5cmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/registry"
)

const (
	done        = "The command was executed successfully"
	untaggedKey = "DefaultUntaggedPriority"
	// notification is the first key of the notification point; those before it belong to the reaction
	// point.
	notification = "DcqcnNPEnablePrio0"
	priorities   = 8
)

// congestionKeys returns those of congestion control, in the order in which they are shown.
func congestionKeys(a *api.AdapterStatus) []catalogue.Key {
	var out []catalogue.Key
	for _, k := range catalogue.KeysFor(catalogue.Target{Generation: a.Class()}) {
		if strings.HasPrefix(k.Name, "Dcqcn") {
			out = append(out, k)
		}
	}
	return out
}

// congestion implements -QosConfig -Dcqcn.
func (r *run) congestion() (report, error) {
	action, err := r.action("Get", "Set", "Enable", "Disable", "Defaults")
	if err != nil {
		return nil, err
	}
	if action != "Set" {
		if err := r.only("Name=", "Get", "Enable?", "Disable?", "Defaults"); err != nil {
			return nil, err
		}
	}
	a, err := r.adapter()
	if err != nil {
		return nil, err
	}
	switch action {
	case "Get":
		return r.attributes(a, func(s *api.Setting) string { return s.Value })
	case "Defaults":
		return r.attributes(a, func(s *api.Setting) string { return s.Default })
	case "Set":
		return r.setCongestion(a)
	}
	return r.enable(a, action, map[string]string{"Enable": "1", "Disable": "0"}[action])
}

// attributes shows congestion control with the value that the function value takes from each setting.
func (r *run) attributes(a *api.AdapterStatus, value func(*api.Setting) string) (report, error) {
	list, err := r.client.Settings(r.ctx, a.Name)
	if err != nil {
		return nil, err
	}
	byName := map[string]*api.Setting{}
	for i := range list {
		byName[list[i].Name] = &list[i]
	}
	var out blocks
	for _, k := range congestionKeys(a) {
		section := "RP"
		if len(out.list) > 1 || k.Name == notification {
			section = "NP"
		}
		if n := len(out.list); n == 0 || out.list[n-1].section != section {
			out.list = append(out.list, block{title: fmt.Sprintf("DCQCN %s attributes for adapter %q", section, a.Name), section: section, adapter: a.Name})
		}
		if s := byName[k.Name]; s != nil {
			out.list[len(out.list)-1].add(k.Name, number(value(s)))
		}
	}
	out.notes = []string{done}
	return out, nil
}

// number returns text as a number, if it is one.
func number(text string) any {
	if n, err := strconv.ParseUint(text, 0, 64); err == nil {
		return n
	}
	return text
}

// setCongestion sets the parameters given as options, all or none.
func (r *run) setCongestion(a *api.AdapterStatus) (report, error) {
	var changes []registry.Change
	out := blocks{list: []block{{title: fmt.Sprintf("Set for adapter %q", a.Name), section: "set", adapter: a.Name}}}
	seen := map[string]bool{}
	for _, o := range r.options {
		switch strings.ToLower(o.name) {
		case "set":
			if o.has {
				return nil, r.usagef("unexpected argument %q behind -Set", o.value)
			}
			continue
		case "name":
			continue
		}
		keys := catalogue.LookupFor(o.name, catalogue.Target{Generation: a.Class()})
		if len(keys) == 0 || !strings.HasPrefix(keys[0].Name, "Dcqcn") {
			return nil, r.usagef("-%s is not a parameter of congestion control; -Get lists them", o.name)
		}
		if !o.has {
			return nil, r.usagef("-%s needs a value", o.name)
		}
		x, err := a.Identity().SetKey(o.name, &o.value)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			if seen[k.Name] {
				return nil, r.usagef("%s is given twice", k.Name)
			}
			seen[k.Name] = true
			out.list[0].add(k.Name, number(o.value))
		}
		changes = append(changes, x...)
	}
	if len(changes) == 0 {
		return nil, r.usagef("no parameter is given")
	}
	return r.store(out, changes)
}

// enable switches congestion control on or off for a priority, or for all.
func (r *run) enable(a *api.AdapterStatus, action, value string) (report, error) {
	from, to := 0, priorities-1
	if text := r.value(action); text != "" {
		p, err := strconv.Atoi(text)
		if err != nil || p < from || p > to {
			return nil, &api.FieldError{Field: "-" + action, Value: strconv.Quote(text), Allowed: "a priority from 0 to 7, or none for all"}
		}
		from, to = p, p
	}
	out := blocks{list: []block{{title: fmt.Sprintf("Set for adapter %q", a.Name), section: "set", adapter: a.Name}}}
	var changes []registry.Change
	for _, role := range []string{"RP", "NP"} {
		for p := from; p <= to; p++ {
			name := fmt.Sprintf("Dcqcn%sEnablePrio%d", role, p)
			x, err := a.Identity().SetKey(name, &value)
			if err != nil {
				return nil, err
			}
			out.list[0].add(name, number(value))
			changes = append(changes, x...)
		}
	}
	return r.store(out, changes)
}

// store changes keys.
func (r *run) store(out blocks, changes []registry.Change) (report, error) {
	notices, err := r.client.ChangeRegistry(r.ctx, changes, false)
	if err != nil {
		return nil, err
	}
	for _, n := range notices {
		if n.Used != nil {
			out.notes = append(out.notes, fmt.Sprintf("Warning: %s %s.", n.Name, n.Text))
		}
	}
	out.notes = append(out.notes, done)
	return out, nil
}

// restore implements -Dcqcn -Restore.
func (r *run) restore() (report, error) {
	if err := r.only("Name=", "Restore"); err != nil {
		return nil, err
	}
	if _, err := r.action("Restore"); err != nil {
		return nil, err
	}
	a, err := r.adapter()
	if err != nil {
		return nil, err
	}
	var changes []registry.Change
	for _, k := range congestionKeys(a) {
		x, err := a.Identity().SetKey(k.Name, nil)
		if err != nil {
			return nil, err
		}
		changes = append(changes, x...)
	}
	if _, err := r.client.ChangeRegistry(r.ctx, changes, false); err != nil {
		return nil, err
	}
	return r.attributes(a, func(s *api.Setting) string { return s.Value })
}

// untagged implements -QosConfig -DefaultUntaggedPriority.
func (r *run) untagged() (report, error) {
	if err := r.only("Name=", "Get", "Set="); err != nil {
		return nil, err
	}
	action, err := r.action("Get", "Set")
	if err != nil {
		return nil, err
	}
	a, err := r.adapter()
	if err != nil {
		return nil, err
	}
	if action == "Set" {
		text := r.value("Set")
		changes, err := a.Identity().SetKey(untaggedKey, &text)
		if err == nil {
			_, err = r.client.ChangeRegistry(r.ctx, changes, false)
		}
		if err != nil {
			return nil, err
		}
	}
	list, err := r.client.Settings(r.ctx, a.Name)
	if err != nil {
		return nil, err
	}
	out := blocks{list: []block{{title: fmt.Sprintf("Default priority of untagged frames for adapter %q", a.Name), adapter: a.Name}}}
	for i := range list {
		if list[i].Name == untaggedKey {
			out.list[0].add(untaggedKey, number(list[i].Value))
		}
	}
	out.notes = []string{done}
	return out, nil
}
