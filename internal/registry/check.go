package registry

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// Notice is a remark about a change that is not an error.
type Notice struct {
	Path   Path   `json:"path"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	Effect string `json:"effect"` // "at once", "at restart", "none", "not kept"
	// Used is the value used instead of one that exceeds what the link or the machine has; nil: it is used
	// as it is.
	Used *uint64 `json:"used,omitempty"`
}

// Check checks changes against the catalogue before they are applied. It refuses values that are not
// allowed for a key, in general, on this machine or in combination with another key (*changeError around a
// *catalogue.ValueError or *catalogue.ConflictError), and returns notices about values that have no effect
// or are not used as they are. Whoever sets values must call it.
func (r *Registry) Check(changes []Change) ([]Notice, error) {
	before := r.root.Load()
	after, b := before, new(batch)
	var notices []Notice
	for i, c := range changes {
		var err error
		if after, err = changes[i].apply(b, after); err != nil {
			return nil, err
		}
		if c.Kind != SetValue {
			continue
		}
		keys := r.known(c.Key, c.Value.Name)
		if len(keys) == 0 {
			if !isIdentity(c.Value.Name) {
				notices = append(notices, Notice{Path: c.Key, Name: c.Value.Name,
					Text: "is not a key of this driver; it is stored and acts on nothing", Effect: "none"})
			}
			continue
		}
		for _, k := range keys {
			if _, err := k.Accept(c.Value.catalogue()); err != nil {
				return nil, &changeError{c, err}
			}
		}
		if n, ok := notice(c, keys[0]); ok {
			notices = append(notices, n)
		}
	}
	for _, a := range after.adapters() {
		more, err := a.compare(before, after, changes, r.lineRate)
		if err != nil {
			return nil, err
		}
		notices = append(notices, more...)
	}
	return notices, nil
}

// compare finds what changes make wrong in an adapter's keys that depend on more than themselves.
func (a Adapter) compare(before, after *node, changes []Change, lineRate func(Adapter) uint64) (notices []Notice, err error) {
	for _, k := range catalogue.KeysFor(a.Target()) {
		if k.Excludes == "" && k.Bound == "" {
			continue
		}
		was, now := before.setting(a, k), after.setting(a, k)
		if now.Problem != nil && (was.Problem == nil || was.Problem.Error() != now.Problem.Error()) {
			return nil, blame(&now, changes)
		}
		most, ok := after.soft(a, k, lineRate)
		if ok && now.Stored && now.Value.Number > most && (!was.Stored || was.Value.Number != now.Value.Number) {
			notices = append(notices, Notice{
				Path: now.Path, Name: now.Name, Text: fmt.Sprintf("is more than the %s, and taken as that: %d", k.Bound, most),
				Effect: "none", Used: &most,
			})
		}
	}
	return notices, nil
}

// soft returns the bound to which a key's value is reduced; false if it has none, or it is unknown.
func (n *node) soft(a Adapter, k catalogue.Key, lineRate func(Adapter) uint64) (most uint64, ok bool) {
	switch {
	case !k.Bound.Soft():
		return 0, false
	case k.Bound != catalogue.LineRate:
		return n.most(a, k.Bound)
	case lineRate != nil:
		most = lineRate(a)
	}
	return most, most > 0
}

// SetLineRate sets the function that returns the speed of an adapter's link, in Mbit/s; 0 if nothing
// limits it. It must be called before the registry is used.
func (r *Registry) SetLineRate(of func(Adapter) uint64) { r.lineRate = of }

// SetProcessors says that keys are for a machine with count processors instead of this machine's.
func (r *Registry) SetProcessors(count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	root := *r.root.Load()
	root.processors = count
	r.root.Store(&root)
}

// blame finds the change that made a setting wrong: to its own value, or to the key that excludes it.
func blame(s *Setting, changes []Change) error {
	for _, c := range changes {
		if c.Kind == SetValue && c.Key.Equal(s.Path) && strings.EqualFold(c.Value.Name, s.Name) {
			return &changeError{c, s.Problem}
		}
	}
	problem := s.Problem
	if e, ok := problem.(*catalogue.ConflictError); ok {
		problem = &catalogue.ConflictError{Key: e.Other, Other: e.Key}
		for _, c := range changes {
			if c.Key.Equal(s.Path) && strings.EqualFold(strings.TrimPrefix(c.Value.Name, "*"), strings.TrimPrefix(e.Other, "*")) {
				return &changeError{c, problem}
			}
		}
	}
	return &changeError{changes[len(changes)-1], problem}
}

// outside says why a value that the key allows is not allowed for this adapter: it exceeds what the
// machine has, or another key excludes it. A key's default never exceeds. Of two keys that exclude each
// other the one that is 0 by default gives way.
func (n *node) outside(a Adapter, k catalogue.Key, v catalogue.Value) error {
	if most, ok := n.most(a, k.Bound); ok && !k.Bound.Soft() {
		if err := k.Exceeds(v, max(most, k.Default(a.Generation, false).Number)); err != nil {
			return err
		}
	}
	if k.Excludes == "" || k.Default(a.Generation, false).Number != 0 {
		return nil
	}
	return k.Conflict(v, func(name string) uint64 {
		for _, o := range catalogue.LookupAt(a.place(k), name, a.Target()) {
			return n.setting(a, o).Value.Number
		}
		return 0
	})
}

// most returns the value of a bound on this machine for an adapter; false if it is unknown.
func (n *node) most(a Adapter, b catalogue.Bound) (uint64, bool) {
	switch b {
	case catalogue.Processors:
		if n.processors > 0 {
			return uint64(n.processors), true
		}
		return uint64(runtime.NumCPU()), true
	case catalogue.ReceiveRings:
		for _, k := range catalogue.LookupFor("*NumRSSQueues", a.Target()) {
			return n.setting(a, k).Number()
		}
	case catalogue.VirtualFunctions:
		p, _ := catalogue.LookupParameter("NUM_OF_VFS")
		most := p.Default.Number
		if at := n.find(a.Configuration()); at != nil {
			if v, ok := at.values[fold(p.Name)]; ok {
				if _, set, err := a.parameter(catalogue.ConfigTool, v); err == nil {
					most = set
				}
			}
		}
		return most, true
	}
	return 0, false // LineRate: the driver knows it
}

func isIdentity(name string) bool {
	for _, n := range identity {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// notice says when a change of the key takes effect, unless that is at once.
func notice(c Change, k catalogue.Key) (Notice, bool) {
	switch {
	case k.Status == catalogue.StoredOnly:
		return Notice{Path: c.Key, Name: c.Value.Name, Text: "is stored only: what it controls is not built yet", Effect: "none"}, true
	case k.Status == catalogue.Inherent:
		return Notice{Path: c.Key, Name: c.Value.Name, Text: "switches nothing: a software adapter has nothing else, docs/registry.md says what",
			Effect: "none"}, true
	case k.Status == catalogue.ReadOnly:
		return Notice{Path: c.Key, Name: c.Value.Name, Text: "is for reading: setting it acts on nothing", Effect: "none"}, true
	case k.Effect == catalogue.AtOnce:
		return Notice{}, false
	case k.Base == catalogue.AdapterClass || k.Base == catalogue.DeviceClass:
		return Notice{Path: c.Key, Name: c.Value.Name, Text: "takes effect when the adapter restarts: softvpi adapter restart",
			Effect: "at restart"}, true
	}
	return Notice{Path: c.Key, Name: c.Value.Name, Text: "takes effect when the adapters restart: softvpi adapter restart",
		Effect: "at restart"}, true
}
