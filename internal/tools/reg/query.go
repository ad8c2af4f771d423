package reg

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// open loads the registry and finds what the arguments identify in it.
func (r *run) open(a *arguments) (*registry.Registry, target, error) {
	reg, err := r.store.Load(r.ctx)
	if err != nil {
		return nil, target{}, err
	}
	t, err := a.target(reg)
	return reg, t, err
}

// query implements REG QUERY.
func (r *run) query(a *arguments) (int, error) {
	reg, t, err := r.open(a)
	if err != nil {
		return 0, err
	}
	q, err := newListing(r, a)
	if err != nil {
		return 0, err
	}
	status, err := q.query(reg, t)
	if err == nil {
		err = errors.Join(q.writeJSON(), q.pending())
	}
	return status, err
}

// query prints what the arguments request.
func (q *listing) query(reg *registry.Registry, t target) (int, error) {
	a := q.a
	k, ok := reg.Key(t.key)
	if t.short != nil {
		if !ok {
			k.Path = t.key
		}
		return q.short(k, t)
	}
	if !ok {
		return 0, errNotFound
	}
	switch {
	case a.has("f"), (a.has("v") || a.has("ve")) && a.has("s"), a.has("t") && a.has("s"):
		return q.search(reg, k), nil
	case a.has("v") || a.has("ve"):
		return q.one(k, t.name)
	case a.has("s"):
		reg.Walk(k.Path, func(k registry.Key) bool {
			q.header(k.Path)
			q.values(k.Values)
			return true
		})
		q.print("\n")
		return tool.Success, nil
	}
	if len(k.Values) > 0 || a.has("json") {
		q.header(k.Path)
		q.values(k.Values)
	}
	q.print("\n")
	for _, p := range k.Subkeys {
		q.print("%s\n", p)
		q.subkey(p)
	}
	return tool.Success, nil
}

// listing prints what was found.
type listing struct {
	run       *run
	a         *arguments
	separator string
	types     []registry.Type // of /t
	pattern   *regexp.Regexp  // of /f
	matches   int
	found     []jsonKey // what --json prints
}

func newListing(r *run, a *arguments) (*listing, error) {
	q := &listing{run: r, a: a, separator: a.valueOr("se", `\0`)}
	if a.has("se") && len(q.separator) != 1 {
		return nil, &syntaxError{a.operation, fmt.Sprintf("/se is %q; allowed: one character.", q.separator)}
	}
	for _, switchOf := range []string{"k", "d", "c", "e"} {
		if a.has(switchOf) && !a.has("f") {
			return nil, &syntaxError{a.operation, "/" + switchOf + " goes with /f."}
		}
	}
	if a.has("v") && a.given["v"] == nil && !a.has("f") {
		return nil, &syntaxError{a.operation, "/v needs a name if there is no /f."}
	}
	if a.has("t") {
		for name := range strings.FieldsFuncSeq(a.value("t"), func(c rune) bool { return c == ',' || c == ' ' }) {
			t, ok := registry.ParseType(name)
			if !ok {
				return nil, &syntaxError{a.operation, fmt.Sprintf("%q is not a type.", name)}
			}
			q.types = append(q.types, t)
		}
	}
	if a.has("f") {
		q.pattern = pattern(a.value("f"), a.has("c"), a.has("e"))
	}
	return q, nil
}

// pattern compiles the text of /f, in which * and ? are wildcards.
func pattern(text string, exactCase, whole bool) *regexp.Regexp {
	s := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(text))
	if whole {
		s = "^" + s + "$"
	}
	flags := "(?s)"
	if !exactCase {
		flags = "(?si)"
	}
	return regexp.MustCompile(flags + s)
}

// one shows one value of a key.
func (q *listing) one(k registry.Key, name string) (int, error) {
	for _, v := range k.Values {
		if (registry.Value{Name: name, Type: v.Type, Data: v.Data}).Equal(v) {
			q.header(k.Path)
			q.values([]registry.Value{v})
			q.print("\n")
			return tool.Success, nil
		}
	}
	if name != "" {
		return 0, errNotFound
	}
	q.header(k.Path)
	q.notSet("", registry.SZ)
	return tool.Success, nil
}

// short shows the value of a key that was given just by its name, whether it is set or not.
func (q *listing) short(k registry.Key, t target) (int, error) {
	for _, v := range k.Values {
		if strings.EqualFold(v.Name, t.name) {
			return q.one(k, v.Name)
		}
	}
	q.header(k.Path)
	q.notSet(t.name, typeOf(t.short.Type))
	return tool.Success, nil
}

// print prints like reg.exe, but nothing if JSON was requested.
func (q *listing) print(format string, args ...any) {
	if !q.a.has("json") {
		fmt.Fprintf(q.run.env.Stdout, format, args...)
	}
}

func (q *listing) header(p registry.Path) {
	q.print("\n%s\n", p)
	q.found = append(q.found, jsonKey{Key: p, Values: []jsonValue{}})
}

func (q *listing) notSet(name string, t registry.Type) {
	q.print("    %s    %s    (value not set)\n\n", show(name), q.typeName(t))
	q.value(jsonValue{Name: name, Type: t.String()})
}

// values prints the values of the types given by /t.
func (q *listing) values(values []registry.Value) {
	for _, v := range values {
		if q.types == nil || slices.Contains(q.types, v.Type) {
			q.print("    %s    %s    %s\n", show(v.Name), q.typeName(v.Type), q.data(v))
			q.value(toJSON(v))
		}
	}
}

func (q *listing) typeName(t registry.Type) string {
	if q.a.has("z") {
		return fmt.Sprintf("%v (%d)", t, uint32(t))
	}
	return t.String()
}

func (q *listing) data(v registry.Value) string {
	if l, ok := v.List(); ok {
		return strings.Join(l, q.separator)
	}
	return v.Show()
}

func show(name string) string {
	if name == "" {
		return "(Default)"
	}
	return name
}

// search prints what matches /f, /v and /t in the key and, with /s, below it.
func (q *listing) search(reg *registry.Registry, top registry.Key) int {
	reg.Walk(top.Path, func(k registry.Key) bool {
		if !k.Path.Equal(top.Path) && !q.a.has("s") {
			q.key(k, nil) // just the names of the keys directly below
			return true
		}
		var found []registry.Value
		for _, v := range k.Values {
			if q.match(v) {
				found = append(found, v)
			}
		}
		q.key(k, found)
		return true
	})
	q.print("\nEnd of search: %d match(es) found.\n", q.matches)
	if q.matches == 0 {
		return tool.Failure
	}
	return tool.Success
}

// key prints a key whose name or values match.
func (q *listing) key(k registry.Key, found []registry.Value) {
	name := q.pattern != nil && !q.a.has("d") && !q.a.has("v") && !q.a.has("ve") && q.types == nil && q.pattern.MatchString(k.Path.Name())
	if name {
		q.matches++
	}
	if name || len(found) > 0 {
		q.header(k.Path)
		q.values(found)
		q.matches += len(found)
	}
}

// match reports whether a value is being searched for.
func (q *listing) match(v registry.Value) bool {
	if q.types != nil && !slices.Contains(q.types, v.Type) {
		return false
	}
	if name := q.a.given["v"]; q.a.has("ve") || name != nil {
		want := q.a.value("v")
		if !strings.EqualFold(v.Name, want) {
			return false
		}
	}
	if q.pattern == nil {
		return true
	}
	names, data := q.a.has("v") && q.a.given["v"] == nil, q.a.has("d")
	if !names && !data && !q.a.has("k") {
		names, data = true, true
	}
	return names && q.pattern.MatchString(v.Name) || data && q.pattern.MatchString(q.data(v))
}
