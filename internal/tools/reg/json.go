package reg

import (
	"encoding/json"
	"fmt"

	"github.com/softvpi/softvpi/internal/registry"
)

// jsonKey is a key as printed by query --json: a list of them, in the order of the text output.
type jsonKey struct {
	Key     registry.Path   `json:"key"`
	Values  []jsonValue     `json:"values"`
	Subkeys []registry.Path `json:"subkeys,omitempty"` // for a query without /s and /f
}

// jsonValue is a value: Data is a number, a string, a list of strings, or bytes as hexadecimal digits, and
// null if the value is not set.
type jsonValue struct {
	Name string `json:"name"` // "" is the key's default value
	Type string `json:"type"`
	Data any    `json:"data"`
}

func toJSON(v registry.Value) jsonValue {
	out := jsonValue{Name: v.Name, Type: v.Type.String()}
	if n, ok := v.Number(); ok {
		out.Data = n
	} else if s, ok := v.Text(); ok {
		out.Data = s
	} else if l, ok := v.List(); ok {
		out.Data = append([]string{}, l...)
	} else {
		out.Data = fmt.Sprintf("%X", v.Data)
	}
	return out
}

// value adds a value to the last key; subkey adds a subkey.
func (q *listing) value(v jsonValue) {
	k := &q.found[len(q.found)-1]
	k.Values = append(k.Values, v)
}

func (q *listing) subkey(p registry.Path) {
	if len(q.found) > 0 {
		k := &q.found[len(q.found)-1]
		k.Subkeys = append(k.Subkeys, p)
	}
}

// writeJSON prints what was found if --json is given.
func (q *listing) writeJSON() error {
	if !q.a.has("json") {
		return nil
	}
	e := json.NewEncoder(q.run.env.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(append([]jsonKey{}, q.found...))
}
