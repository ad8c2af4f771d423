package reg

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// add implements REG ADD.
func (r *run) add(a *arguments) (int, error) {
	reg, t, err := r.open(a)
	if err != nil {
		return 0, err
	}
	if t.short == nil && !a.has("v") && !a.has("ve") && !a.has("d") && !a.has("t") {
		return r.apply(a, registry.Change{Kind: registry.CreateKey, Key: t.key})
	}
	v, err := a.data(t)
	if err != nil {
		return 0, err
	}
	if _, there := reg.Get(t.key, v.Name); there && !a.has("f") {
		if yes, err := r.ask("Value %s exists, overwrite", show(v.Name)); err != nil || !yes {
			return tool.Success, err
		}
	}
	return r.apply(a, registry.Change{Kind: registry.SetValue, Key: t.key, Value: v})
}

func (r *run) apply(a *arguments, changes ...registry.Change) (int, error) {
	notices, err := r.store.Apply(r.ctx, changes, a.has("unchecked"))
	if err != nil {
		return 0, err
	}
	return r.done(notices)
}

// data builds the value from /t, /s and /d.
func (a *arguments) data(t target) (registry.Value, error) {
	name, data := t.name, a.value("d")
	if t.short != nil && !a.has("t") {
		if !a.has("unchecked") {
			v, err := t.short.Parse(data)
			if err != nil {
				return registry.Value{}, err
			}
			out := registry.FromCatalogue(*t.short, v)
			out.Name = name
			return out, nil
		}
		return a.typed(typeOf(t.short.Type), name, data)
	}
	text := a.valueOr("t", "REG_SZ")
	typ, ok := registry.ParseType(text)
	if !ok {
		return registry.Value{}, &syntaxError{a.operation, fmt.Sprintf("%q is not a type; allowed: REG_SZ, REG_EXPAND_SZ, REG_MULTI_SZ, REG_DWORD, REG_QWORD, REG_BINARY, REG_NONE.", text)}
	}
	return a.typed(typ, name, data)
}

func typeOf(t catalogue.Type) registry.Type {
	typ, _ := registry.ParseType(t.String())
	return typ
}

func (a *arguments) typed(typ registry.Type, name, data string) (registry.Value, error) {
	v := registry.Value{Name: name, Type: typ}
	switch typ {
	case registry.SZ, registry.ExpandSZ, registry.Link:
		v.Data = registry.String("", data).Data
	case registry.MultiSZ:
		var list []string
		if data = strings.TrimSuffix(data, a.valueOr("s", `\0`)); data != "" {
			list = strings.Split(data, a.valueOr("s", `\0`))
		}
		v.Data = registry.Strings("", list).Data
	case registry.DWORD, registry.DWORDBigEndian, registry.QWORD:
		n, ok := catalogue.ParseNumber(data)
		if data == "" {
			n, ok = 0, true
		}
		if !ok || typ != registry.QWORD && n > 1<<32-1 {
			return v, wrongf("%q is not a %v; allowed: a number, decimal or hexadecimal with 0x, of %d bits", data, typ,
				map[bool]int{true: 64, false: 32}[typ == registry.QWORD])
		}
		v.Data = registry.QWord("", n).Data
		if typ != registry.QWORD {
			v.Data = v.Data[:4]
		}
		if typ == registry.DWORDBigEndian {
			v.Data = []byte{v.Data[3], v.Data[2], v.Data[1], v.Data[0]}
		}
	default:
		b, err := hex.DecodeString(data)
		if err != nil {
			return v, wrongf("%q is not a %v; allowed: an even number of hexadecimal digits", data, typ)
		}
		v.Data = b
	}
	return v, nil
}

// delete implements REG DELETE.
func (r *run) delete(a *arguments) (int, error) {
	reg, t, err := r.open(a)
	if err != nil {
		return 0, err
	}
	k, ok := reg.Key(t.key)
	if !ok {
		return 0, errNotFound
	}
	c := registry.Change{Kind: registry.DeleteKey, Key: k.Path}
	question := "Permanently delete the registry key " + k.Path.String()
	switch {
	case a.has("va"):
		c.Kind, question = registry.DeleteValues, "Delete all values under the registry key "+k.Path.String()
	case t.short != nil || a.has("v") || a.has("ve"):
		c.Kind, c.Value.Name, question = registry.DeleteValue, t.name, "Delete the registry value "+show(t.name)
		if _, ok := reg.Get(t.key, t.name); !ok {
			return 0, errNotFound
		}
	}
	if !a.has("f") {
		if yes, err := r.ask("%s", question); err != nil || !yes {
			return tool.Success, err
		}
	}
	return r.apply(a, c)
}

// export implements REG EXPORT.
func (r *run) export(a *arguments) (int, error) {
	reg, err := r.store.Load(r.ctx)
	if err != nil {
		return 0, err
	}
	p, err := registry.ParsePath(a.names[0])
	if err != nil {
		return 0, err
	}
	k, ok := reg.Key(p)
	if !ok {
		return 0, errNotFound
	}
	format := registry.Version5
	if a.has("a") {
		format = registry.Regedit4
	}
	file := a.names[1]
	if _, err := os.Lstat(file); err == nil && !a.has("y") {
		if yes, err := r.ask("File %s already exists. Overwrite", file); err != nil || !yes {
			return tool.Success, err
		}
	}
	var text strings.Builder
	if err := reg.WriteRegFile(&text, k.Path, format); err != nil {
		return 0, err
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		return 0, err
	}
	return r.done(nil)
}

// importFile implements REG IMPORT.
func (r *run) importFile(a *arguments) (int, error) {
	b, err := r.readFile(a.names[0])
	if err != nil {
		return 0, err
	}
	changes, err := registry.ParseRegFile(b)
	if err != nil {
		return 0, fmt.Errorf("%s: %w; nothing was imported", a.names[0], err)
	}
	notices, err := r.store.Apply(r.ctx, changes, a.has("unchecked"))
	if err != nil {
		return 0, fmt.Errorf("%s: %w; nothing was imported", a.names[0], err)
	}
	return r.done(notices)
}

// readFile reads a file, or the standard input.
func (r *run) readFile(name string) ([]byte, error) {
	if name == "-" {
		return inputfile.ReadFrom(r.ctx, r.in, "the standard input", registry.MaxRegFile)
	}
	b, err := inputfile.Read(name, registry.MaxRegFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file", name)
	}
	return b, err
}
