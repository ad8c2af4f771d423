package api

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/softvpi/softvpi/internal/registry"
)

// RegistryValue is a value of a registry key.
type RegistryValue struct {
	Name string `json:"name" doc:"Empty: the key's default value."`
	Type string `json:"type" doc:"REG_SZ, REG_DWORD and so on, or a number."`
	Data []byte `json:"data,omitempty" doc:"As Windows holds it: strings in UTF-16LE with a zero behind, numbers in little endian."`
	Text string `json:"text,omitempty" doc:"The data as reg query shows it; not read in requests."`
}

// RegistryKey is a registry key.
type RegistryKey struct {
	Path    string          `json:"path"`
	Values  []RegistryValue `json:"values"`
	Subkeys []string        `json:"subkeys" doc:"Full paths."`
}

// RegistryChange is one step of a change to the registry.
type RegistryChange struct {
	Kind    string         `json:"kind" enum:"create key,set value,delete value,delete values,delete key"`
	Path    string         `json:"path"`
	Value   *RegistryValue `json:"value,omitempty" doc:"Of set value; of delete value the name."`
	Lenient bool           `json:"lenient,omitempty" doc:"Deleting something that does not exist is not an error."`
	Line    int            `json:"line,omitempty" doc:"Where it stands in a file, for messages."`
}

// RegistryChanges are changes that are made all or none.
type RegistryChanges struct {
	Changes   []RegistryChange `json:"changes" maxItems:"100000"`
	Unchecked bool             `json:"unchecked,omitempty" doc:"Store values that the catalogue does not allow, too; the driver uses the default then."`
}

// Notices are remarks about a change.
type Notices struct {
	Notices []registry.Notice `json:"notices"`
}

// kinds are the names of the kinds of changes, by number.
var kinds = []string{"create key", "set value", "delete value", "delete values", "delete key"}

// KindName returns how requests name a kind of changes.
func KindName(k registry.Kind) string { return kinds[k] }

// NewRegistryValue converts a value to its form in the interface.
func NewRegistryValue(v registry.Value) RegistryValue {
	out := RegistryValue{Name: v.Name, Type: v.Type.String(), Data: v.Data, Text: v.Show()}
	if _, named := registry.ParseType(out.Type); !named {
		out.Type = strconv.FormatUint(uint64(v.Type), 10)
	}
	if out.Data == nil {
		out.Data = []byte{}
	}
	return out
}

// Registry returns the value as the registry has it. The error is a *FieldError.
func (v RegistryValue) Registry() (registry.Value, error) {
	t, ok := registry.ParseType(v.Type)
	if !ok {
		n, err := strconv.ParseUint(v.Type, 10, 32)
		if err != nil {
			return registry.Value{}, &FieldError{"type", strconv.Quote(v.Type),
				"REG_SZ, REG_EXPAND_SZ, REG_MULTI_SZ, REG_DWORD, REG_QWORD, REG_BINARY, REG_NONE, or a number"}
		}
		t = registry.Type(n)
	}
	return registry.Value{Name: v.Name, Type: t, Data: v.Data}, nil
}

func fromChange(c registry.Change) RegistryChange {
	out := RegistryChange{Kind: KindName(c.Kind), Path: c.Key.String(), Lenient: c.Lenient, Line: c.Line}
	if c.Kind == registry.SetValue || c.Kind == registry.DeleteValue {
		v := NewRegistryValue(c.Value)
		out.Value = &v
	}
	return out
}

// Registry returns the change as the registry takes it. Errors are *FieldError and those of registry.ParsePath.
func (c RegistryChange) Registry() (registry.Change, error) {
	p, err := registry.ParsePath(c.Path)
	if err != nil {
		return registry.Change{}, err
	}
	kind := slices.Index(kinds, c.Kind)
	if kind < 0 {
		return registry.Change{}, &FieldError{"kind", strconv.Quote(c.Kind), fmt.Sprint(kinds)}
	}
	out := registry.Change{Kind: registry.Kind(kind), Key: p, Lenient: c.Lenient, Line: c.Line}
	if out.Kind != registry.SetValue && out.Kind != registry.DeleteValue {
		return out, nil
	}
	if c.Value == nil {
		return out, &FieldError{"value", "missing", "the value to set, or the name of the one to delete"}
	}
	if out.Kind == registry.DeleteValue {
		out.Value.Name = c.Value.Name
		return out, nil
	}
	out.Value, err = c.Value.Registry()
	return out, err
}

// LoadRegistry returns a copy of the whole registry.
func (c *Client) LoadRegistry(ctx context.Context) (*registry.Registry, error) {
	var keys []RegistryKey
	if err := c.call(ctx, "GET", "/registry/keys", url.Values{"path": {registry.Root}, "recurse": {"true"}}, nil, &keys); err != nil {
		return nil, err
	}
	var changes []registry.Change
	for _, k := range keys {
		p, err := registry.ParsePath(k.Path)
		if err != nil {
			return nil, err
		}
		changes = append(changes, registry.Change{Kind: registry.CreateKey, Key: p})
		for _, v := range k.Values {
			value, err := v.Registry()
			if err != nil {
				return nil, err
			}
			changes = append(changes, registry.Change{Kind: registry.SetValue, Key: p, Value: value})
		}
	}
	r := registry.NewVolatile("a copy of the driver's")
	return r, r.Apply(changes...)
}

// ChangeRegistry makes changes, all or none.
func (c *Client) ChangeRegistry(ctx context.Context, changes []registry.Change, unchecked bool) ([]registry.Notice, error) {
	q := RegistryChanges{Changes: make([]RegistryChange, len(changes)), Unchecked: unchecked}
	for i, x := range changes {
		q.Changes[i] = fromChange(x)
	}
	var n Notices
	err := c.call(ctx, "POST", "/registry/changes", nil, q, &n)
	return n.Notices, err
}
