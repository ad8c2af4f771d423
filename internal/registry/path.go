package registry

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// Root is the name of the only root key, ShortRoot its abbreviation.
	Root      = "HKEY_LOCAL_MACHINE"
	ShortRoot = "HKLM"
	// ControlSet is the key below which everything is.
	ControlSet = `SYSTEM\CurrentControlSet`

	maxKeyName   = 255   // UTF-16 units of one key's name, as in Windows
	maxValueName = 16383 // UTF-16 units
	maxDepth     = 64
)

// Path identifies a key: a clean path below Root. The zero value is the root itself.
type Path struct{ s string }

// ErrInvalid says that the name of a key, or a .reg file, is written wrongly. The errors that it matches say where and what is allowed.
var ErrInvalid = errors.New("not valid in this registry")

// A pathError says that a key name is not valid in this registry.
type pathError struct{ Path, Reason string }

func (e *pathError) Error() string { return fmt.Sprintf("key %s: %s", quoted(e.Path), e.Reason) }

// Is makes it ErrInvalid.
func (e *pathError) Is(target error) bool { return target == ErrInvalid }

// quoted quotes the name of a key or value in the form in which it is written elsewhere, without doubled
// backslashes. Only unprintable characters are escaped.
func quoted(name string) string {
	for _, r := range name {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return strconv.Quote(name)
		}
	}
	return `"` + name + `"`
}

// ParsePath parses a full path: HKLM or HKEY_LOCAL_MACHINE, then names separated by backslashes. Only
// paths of SYSTEM\CurrentControlSet exist. Errors are *pathError.
func ParsePath(s string) (Path, error) {
	root, rest, _ := strings.Cut(s, `\`)
	if !strings.EqualFold(root, Root) && !strings.EqualFold(root, ShortRoot) {
		return Path{}, &pathError{s, "allowed: a path that begins with HKLM or HKEY_LOCAL_MACHINE"}
	}
	rest = strings.TrimSuffix(rest, `\`)
	if rest == "" {
		return Path{}, nil
	}
	names := strings.Split(rest, `\`)
	if len(names) > maxDepth {
		return Path{}, &pathError{s, fmt.Sprintf("%d keys deep; allowed: %d", len(names), maxDepth)}
	}
	for _, n := range names {
		if err := checkName(n); err != "" {
			return Path{}, &pathError{s, err}
		}
	}
	p := Path{rest}
	if base := (Path{ControlSet}); !base.Contains(p) && !p.Contains(base) {
		return Path{}, &pathError{s, `allowed: keys below HKLM\` + ControlSet}
	}
	return p, nil
}

// checkName says what is wrong with the name of a key, if anything.
func checkName(n string) string {
	switch {
	case n == "":
		return "an empty name between two backslashes"
	case !utf8.ValidString(n):
		return "not UTF-8"
	case strings.ContainsFunc(n, func(r rune) bool { return r == 0 || r == '\n' || r == '\r' }):
		return "a name holds a zero or a line break"
	case units(n) > maxKeyName:
		return fmt.Sprintf("a name of %d characters; allowed: %d", units(n), maxKeyName)
	}
	return ""
}

// units returns the length of s in UTF-16 units.
func units(s string) (n int) {
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// String returns the full path with the long name of the root.
func (p Path) String() string {
	if p.s == "" {
		return Root
	}
	return Root + `\` + p.s
}

// MarshalText writes the full path.
func (p Path) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a full path.
func (p *Path) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePath(string(b))
	return err
}

// Child returns the key with that name, or relative path, below p. The name must be clean.
func (p Path) Child(name string) Path {
	if p.s == "" {
		return Path{name}
	}
	return Path{p.s + `\` + name}
}

// Name returns the last name of the path.
func (p Path) Name() string { return p.s[strings.LastIndexByte(p.s, '\\')+1:] }

// Equal compares paths as the registry does, without regard to case.
func (p Path) Equal(q Path) bool { return fold(p.s) == fold(q.s) }

// Contains reports whether q is p or a key below it.
func (p Path) Contains(q Path) bool {
	a, b := fold(p.s), fold(q.s)
	return a == "" || a == b || strings.HasPrefix(b, a+`\`)
}

func (p Path) split() []string {
	if p.s == "" {
		return nil
	}
	return strings.Split(p.s, `\`)
}

func (p Path) names() int { return len(p.split()) }

// fold returns the form in which names are compared: each character in upper case by itself, as in
// Windows.
func fold(s string) string { return strings.ToUpper(s) }
