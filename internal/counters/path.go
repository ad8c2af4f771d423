package counters

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// Path selects counters as in typeperf: "\Set(Instance)\Counter", with "*" for any characters, optionally
// preceded by a computer ("\\Computer\Set..."), which is ignored. Without "(Instance)" it selects every
// instance. Names are printed or short ones, in any letter case. "set", "set.counter" and
// "set(instance).counter" are the same with short names.
type Path struct {
	Set, Instance, Counter string
}

// PathError is a path that selects nothing.
type PathError struct {
	Path    string
	Problem string
	Allowed []string
}

func (e *PathError) Error() string {
	s := fmt.Sprintf("counter path %q: %s", e.Path, e.Problem)
	if len(e.Allowed) > 0 {
		s += "; allowed: " + strings.Join(e.Allowed, ", ")
	}
	return s
}

// ParsePath parses a path.
func ParsePath(text string) (Path, error) {
	bad := func(problem string) (Path, error) {
		return Path{}, &PathError{text, problem, []string{`\Set(Instance)\Counter`, "set.counter"}}
	}
	rest := text
	if after, ok := strings.CutPrefix(rest, `\\`); ok {
		_, rest, ok = strings.Cut(after, `\`)
		if !ok {
			return bad("a computer without a counter set")
		}
	} else {
		rest = strings.TrimPrefix(rest, `\`)
	}
	p := Path{Instance: "*", Counter: "*"}
	sep := `\`
	if !strings.Contains(rest, sep) {
		sep = "."
	}
	// An instance may contain anything except ")" before a separator.
	if i := strings.LastIndex(rest, ")"+sep); i >= 0 {
		p.Counter = rest[i+1+len(sep):]
		rest = rest[:i+1]
	} else if !strings.HasSuffix(rest, ")") {
		if set, counter, ok := strings.Cut(rest, sep); ok {
			rest, p.Counter = set, counter
		}
	}
	p.Set = rest
	if strings.HasSuffix(rest, ")") {
		i := strings.Index(rest, "(")
		if i < 0 {
			return bad("a \")\" without \"(\"")
		}
		p.Set, p.Instance = rest[:i], rest[i+1:len(rest)-1]
	}
	if p.Set == "" || p.Instance == "" || p.Counter == "" {
		return bad("a name is empty")
	}
	return p, nil
}

// formatPath returns the path of a counter as typeperf prints it.
func formatPath(computer, set, instance, counter string) string {
	return `\\` + computer + `\` + set + "(" + instance + `)\` + counter
}

// matches reports whether name matches pattern, which may contain "*".
func matches(pattern, name string) bool {
	pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	last := len(parts) - 1
	for _, p := range parts[1:last] {
		i := strings.Index(name, p)
		if i < 0 {
			return false
		}
		name = name[i+len(p):]
	}
	return strings.HasSuffix(name, parts[last])
}

// Selection is what the paths of a request select; empty: everything. It notes which of them have selected something.
type Selection []*selected

type selected struct {
	text string
	Path
	used bool
}

// ParsePaths parses the paths of a request. The error is a *PathError, also for a set or a counter that the catalogue does not have.
func ParsePaths(paths []string) (Selection, error) {
	var sel Selection
	for _, text := range paths {
		p, err := ParsePath(text)
		if err != nil {
			return nil, err
		}
		if err := p.check(text); err != nil {
			return nil, err
		}
		sel = append(sel, &selected{text: text, Path: p})
	}
	return sel, nil
}

// CheckPath checks a path as far as that is possible without a driver.
func CheckPath(text string) error {
	_, err := ParsePaths([]string{text})
	return err
}

// PathHasSet reports whether a path selects counters of the set with that short name.
func PathHasSet(text, short string) bool {
	p, err := ParsePath(text)
	set, ok := catalogue.CounterSetNamed(short)
	return err == nil && ok && p.isSet(set)
}

// check finds names that no set and no counter has.
func (p *Path) check(text string) error {
	var names []string
	sets := 0
	for i := range catalogue.CounterSets() {
		set := &catalogue.CounterSets()[i]
		if !p.isSet(set) {
			continue
		}
		sets++
		for j := range set.Counters {
			if p.isCounter(&set.Counters[j]) {
				return nil
			}
			names = append(names, set.Counters[j].Name)
		}
	}
	if sets == 0 {
		return &PathError{text, "no such counter set", setNames()}
	}
	return &PathError{text, "no such counter in the set", names}
}

func (p *Path) isSet(set *catalogue.CounterSet) bool {
	if matches(p.Set, set.Name) || matches(p.Set, set.Short) {
		return true
	}
	for _, a := range set.Aliases {
		if matches(p.Set, a) {
			return true
		}
	}
	return false
}

func (p *Path) isCounter(c *catalogue.Counter) bool {
	return matches(p.Counter, c.Name) || matches(p.Counter, c.Short)
}

// Selects reports whether a path selects a counter of an instance of a set, by its number in the set.
func (s Selection) Selects(set *catalogue.CounterSet, instance string, i int) bool {
	found := len(s) == 0
	for _, p := range s {
		if p.isSet(set) && matches(p.Instance, instance) && p.isCounter(&set.Counters[i]) {
			p.used, found = true, true
		}
	}
	return found
}

// Names reports whether a path selects counters of the set with that short name, and not of every set.
func (s Selection) Names(short string) bool {
	set, _ := catalogue.CounterSetNamed(short)
	for _, p := range s {
		if p.Set != "*" && p.isSet(set) {
			return true
		}
	}
	return false
}

// Unused returns the error for a path that selects no counter of the existing adapters.
func (s Selection) Unused() error {
	for _, p := range s {
		if !p.used {
			return &PathError{p.text, "no adapter has such an instance or counter", nil}
		}
	}
	return nil
}
