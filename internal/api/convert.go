package api

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/registry"
)

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

// EffectName says when a change of the key takes effect.
func EffectName(k catalogue.Key) string {
	if k.Effect == catalogue.AtOnce {
		return "at once"
	}
	return "at restart"
}

// StatusName says how far what the key controls is implemented.
func StatusName(k catalogue.Key) string {
	return map[catalogue.Status]string{catalogue.Built: "built", catalogue.StoredOnly: "stored only",
		catalogue.ReadOnly: "read only", catalogue.Inherent: "switches nothing"}[k.Status]
}

// Choices returns the key's choices.
func Choices(k catalogue.Key) []Choice {
	var out []Choice
	for _, c := range k.Choices {
		out = append(out, Choice{k.Format(catalogue.Value{Type: k.Type, Number: c.Value}), c.Name, c.Meaning})
	}
	return out
}

// DefaultText returns a key's default as text; for an automatic one, what it is derived from.
func DefaultText(k catalogue.Key, g catalogue.Generation) string {
	d := k.Default(g, false)
	if v, ok := d.Value(k); ok {
		return k.Format(v)
	}
	return d.Text
}

// GenerationName returns mlx5 or mlx4.
func GenerationName(g catalogue.Generation) string {
	if g == catalogue.MLX4 {
		return "mlx4"
	}
	return "mlx5"
}
