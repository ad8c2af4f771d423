package registry

import (
	"strings"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// Setting is the value of a catalogue key that is in force for an adapter.
type Setting struct {
	Key   catalogue.Key
	Value catalogue.Value
	// Auto says that the value is derived, as the key's default describes; Value is then meaningless.
	Auto bool
	// Stored says that the value is in the registry, at Path under Name; otherwise it is the default.
	Stored bool
	Path   Path
	Name   string
	// Problem says that the value at Path is not allowed for the key, so that the default is used.
	Problem error
}

// Number returns the number of a numeric setting; false if it is automatic.
func (s Setting) Number() (uint64, bool) { return s.Value.Number, !s.Auto && s.Key.Numeric() }

// Text returns the value in the form that reg add takes; for an automatic one what it is derived from, in
// parentheses.
func (s Setting) Text() string {
	if s.Auto {
		return "(" + s.Key.Default(s.Key.Generations, false).Text + ")"
	}
	return s.Key.Format(s.Value)
}

// Settings returns every setting that an adapter has, in the catalogue's order, including those of its
// driver.
func (r *Registry) Settings(a Adapter) []Setting {
	root := r.root.Load()
	keys := catalogue.KeysFor(a.Target())
	out := make([]Setting, 0, len(keys))
	found := map[catalogue.Place]spot{} // there are a few places for hundreds of keys
	for _, k := range keys {
		p := a.place(k)
		at, ok := found[p]
		if !ok {
			at = root.spot(p)
			found[p] = at
		}
		out = append(out, r.used(root, a, root.settingAt(a, k, at)))
	}
	return out
}

// Setting returns what is in force for an adapter under a name: the value in the most specific place where
// it is set (WinOF-2 1.21, RoCE mode: the adapter's key, then the driver's), otherwise the default of the
// least specific. A value that is not allowed counts as not set. False: the adapter has no such key.
func (r *Registry) Setting(a Adapter, name string) (Setting, bool) {
	root := r.root.Load()
	var s Setting
	keys := catalogue.LookupFor(name, a.Target())
	for _, k := range keys {
		below := s.Problem
		if s = root.setting(a, k); s.Stored && s.Problem == nil {
			return r.used(root, a, s), true
		}
		if s.Problem == nil {
			s.Problem = below
		}
	}
	return s, len(keys) > 0
}

// used returns a setting with the value that is actually used, which is limited to what the link or the
// machine has.
func (r *Registry) used(root *node, a Adapter, s Setting) Setting {
	if !s.Stored || !s.Key.Bound.Soft() {
		return s
	}
	if most, ok := root.soft(a, s.Key, r.lineRate); ok && s.Value.Number > most {
		s.Value.Number = most
	}
	return s
}

// setting reads one key.
func (n *node) setting(a Adapter, k catalogue.Key) Setting {
	return n.settingAt(a, k, n.spot(a.place(k)))
}

// spot is a place of the catalogue in a tree.
type spot struct {
	path Path
	key  *node // nil: there is none
}

func (n *node) spot(p catalogue.Place) spot {
	path := keyPath(p)
	return spot{path, n.find(path)}
}

func (n *node) settingAt(a Adapter, k catalogue.Key, where spot) Setting {
	s := Setting{Key: k, Name: k.Name, Path: where.path}
	if at := where.key; at != nil {
		for _, name := range spellings(k) {
			v, ok := at.values[fold(name)]
			if !ok {
				continue
			}
			s.Name = v.Name
			if s.Value, s.Problem = k.Accept(v.catalogue()); s.Problem == nil {
				s.Problem = n.outside(a, k, s.Value)
			}
			if s.Problem == nil {
				s.Stored, s.Auto = true, s.Value.Auto
				return s
			}
			break
		}
	}
	d := k.Default(a.Generation, false)
	s.Value, _ = d.Value(k)
	s.Auto = d.Auto
	return s
}

// spellings returns the names under which a key's value may be stored.
func spellings(k catalogue.Key) []string {
	out := []string{k.Name}
	if bare, ok := strings.CutPrefix(k.Name, "*"); ok {
		out = append(out, bare)
	} else {
		out = append(out, "*"+k.Name)
	}
	return append(out, k.Aliases...)
}

// keyPath returns the key for a place of the catalogue, whose paths are clean.
func keyPath(p catalogue.Place) Path {
	return Path{strings.TrimPrefix(p.String(), ShortRoot+`\`)}
}

// Place returns the key that holds the value of k for an adapter.
func (a Adapter) Place(k catalogue.Key) Path { return keyPath(a.place(k)) }

// catalogue converts the value to the catalogue's form. Data that does not fit its type becomes binary.
func (v Value) catalogue() catalogue.Value {
	if n, ok := v.Number(); ok {
		t := catalogue.DWORD
		if v.Type == QWORD {
			t = catalogue.QWORD
		}
		return catalogue.Value{Type: t, Number: n}
	}
	if s, ok := v.Text(); ok {
		return catalogue.Value{Type: catalogue.String, Text: s}
	}
	if l, ok := v.List(); ok {
		return catalogue.Value{Type: catalogue.MultiString, Strings: l}
	}
	return catalogue.Value{Type: catalogue.Binary, Bytes: v.Data}
}

// FromCatalogue converts a value of the catalogue to the registry's form.
func FromCatalogue(k catalogue.Key, v catalogue.Value) Value {
	switch {
	case v.Auto:
		return String(k.Name, k.AutoText)
	case k.Type == catalogue.DWORD:
		return DWord(k.Name, uint32(v.Number))
	case k.Type == catalogue.QWORD:
		return QWord(k.Name, v.Number)
	case k.Type == catalogue.Binary:
		return Value{k.Name, Binary, v.Bytes}
	case k.Type == catalogue.MultiString:
		return Strings(k.Name, v.Strings)
	}
	return String(k.Name, k.Format(v))
}

// known returns the catalogue's keys that a value with this name at this path is for, considering the
// adapter that the path belongs to; none if it is not a key of this driver.
func (r *Registry) known(p Path, name string) []catalogue.Key {
	place, err := catalogue.ParsePath(p.String())
	if err != nil {
		return nil
	}
	targets := []catalogue.Target{{Generation: catalogue.MLX5}, {Generation: catalogue.MLX4}}
	var own []catalogue.Target
	for _, a := range r.Adapters() {
		if place.Base == catalogue.AdapterClass && a.Number == place.Number || place.Base == catalogue.DeviceClass &&
			a.DeviceNumber == place.Number {
			own = append(own, a.Target())
		}
	}
	if len(own) > 0 {
		targets = own
	}
	var keys []catalogue.Key
	for _, t := range targets {
		if keys = catalogue.LookupAt(place, name, t); len(keys) > 0 {
			break
		}
	}
	return keys
}
