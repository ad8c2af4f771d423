package cmdlets

import (
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/registry"
)

// recordsPath is the key below which is kept what commands say that adapters have no place for: names, stores, records of features
// that are not in yet. Each kind has a key, and each record a key with its properties in that.
const recordsPath = registry.ShortRoot + `\` + registry.ControlSet + `\Services\SoftVPI\PowerShell`

// record is a record with its properties by name.
type record struct {
	id     string
	fields map[string]string
}

// recordPath returns the key of a record, or of a kind. Backslashes in its name are escaped.
func recordPath(names ...string) (registry.Path, error) {
	path := recordsPath
	for _, n := range names {
		path += `\` + strings.NewReplacer("%", "%25", `\`, "%5C").Replace(n)
	}
	return registry.ParsePath(path)
}

// records returns the records of a kind, by their names.
func (r *run) records(kind string) ([]record, error) {
	reg, err := r.driver.LoadRegistry(r.Context)
	if err != nil {
		return nil, err
	}
	return recordsIn(reg, kind)
}

func recordsIn(reg *registry.Registry, kind string) (out []record, err error) {
	path, err := recordPath(kind)
	if err != nil {
		return nil, err
	}
	key, ok := reg.Key(path)
	if !ok {
		return nil, nil
	}
	for _, p := range key.Subkeys {
		sub, ok := reg.Key(p)
		if !ok {
			continue
		}
		x := record{strings.NewReplacer("%5C", `\`, "%25", "%").Replace(p.Name()), map[string]string{}}
		for _, v := range sub.Values {
			x.fields[v.Name], _ = v.Text()
		}
		out = append(out, x)
	}
	return out, nil
}

// find returns a record by its name in any letter case.
func find(list []record, id string) (record, bool) {
	i := slices.IndexFunc(list, func(x record) bool { return strings.EqualFold(x.id, id) })
	if i < 0 {
		return record{fields: map[string]string{}}, false
	}
	return list[i], true
}

// keep stores a record in place of one of the same name.
func (r *run) keep(kind string, x record) error {
	path, err := recordPath(kind, x.id)
	if err != nil {
		return err
	}
	changes := []registry.Change{{Kind: registry.CreateKey, Key: path}, {Kind: registry.DeleteValues, Key: path, Lenient: true}}
	for _, name := range sortedKeys(x.fields) {
		changes = append(changes, registry.Change{Kind: registry.SetValue, Key: path, Value: registry.String(name, x.fields[name])})
	}
	_, err = r.driver.ChangeRegistry(r.Context, changes, false)
	return err
}

// forget removes records.
func (r *run) forget(kind string, ids ...string) error {
	var changes []registry.Change
	for _, id := range ids {
		path, err := recordPath(kind, id)
		if err != nil {
			return err
		}
		changes = append(changes, registry.Change{Kind: registry.DeleteKey, Key: path, Lenient: true})
	}
	if len(changes) == 0 {
		return nil
	}
	_, err := r.driver.ChangeRegistry(r.Context, changes, false)
	return err
}

func sortedKeys(m map[string]string) []string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
