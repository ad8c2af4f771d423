package registry

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// Kind says what a Change does.
type Kind uint8

// The kinds.
const (
	CreateKey    Kind = iota // create the key and those above it
	SetValue                 // set a value, creating the key
	DeleteValue              // delete the value with that name
	DeleteValues             // delete all values of the key, but keep its subkeys
	DeleteKey                // delete the key and everything below it
)

// Change is one step of an Apply.
type Change struct {
	Kind  Kind
	Key   Path
	Value Value // for SetValue; for DeleteValue only the name counts
	// Lenient makes it no error to delete what does not exist, as in .reg files.
	Lenient bool
	// Line is the change's line in its file, 0 if it comes from none.
	Line int
}

// A changeError says that a Change cannot be made.
type changeError struct {
	Change Change
	Err    error
}

func (e *changeError) Error() string {
	what := e.Change.Key.String()
	if e.Change.Kind == SetValue || e.Change.Kind == DeleteValue {
		what += ", value " + quoteName(e.Change.Value.Name)
	}
	if e.Change.Line > 0 {
		what = fmt.Sprintf("line %d: %s", e.Change.Line, what)
	}
	return what + ": " + e.Err.Error()
}

func (e *changeError) Unwrap() error { return e.Err }

func quoteName(name string) string {
	if name == "" {
		return "(Default)"
	}
	return quoted(name)
}

// check refuses what no registry can hold.
func (c *Change) check() error {
	if c.Kind != SetValue && c.Kind != DeleteValue {
		if c.Kind == DeleteKey && c.Key.names() < protectedDepth {
			return fmt.Errorf("this key cannot be deleted; allowed: keys below HKLM\\%s\\Services and HKLM\\%s\\Control", ControlSet,
				ControlSet)
		}
		if len(c.Key.entry()) > maxEntry {
			return fmt.Errorf("the path has %d bytes; allowed: %d", len(c.Key.entry()), maxEntry)
		}
		return nil
	}
	v := &c.Value
	switch {
	case len(c.entry()) > maxEntry:
		return fmt.Errorf("path and name have %d bytes; allowed: %d", len(c.entry()), maxEntry)
	case len(v.Data) > maxData:
		return fmt.Errorf("data of %d bytes; allowed: %d", len(v.Data), maxData)
	case units(v.Name) > maxValueName:
		return fmt.Errorf("a name of %d characters; allowed: %d", units(v.Name), maxValueName)
	case !utf8.ValidString(v.Name) || strings.ContainsAny(v.Name, "\x00\r\n"):
		return errors.New("the name is not one line of UTF-8 text without zeros")
	case c.Kind == SetValue && c.Key.names() < protectedDepth-1:
		return fmt.Errorf("values are allowed below HKLM\\%s", ControlSet)
	}
	return nil
}

// maxEntry is the maximum length of a value's path and name together, in bytes: what the file format
// allows.
const maxEntry = bbolt.MaxKeySize

// protectedDepth is the minimum depth of a key that may be deleted: SYSTEM\CurrentControlSet\Services\x.
const protectedDepth = 4

// apply returns the tree with the change made.
func (c *Change) apply(b *batch, root *node) (*node, error) {
	if err := c.check(); err != nil {
		return nil, &changeError{*c, err}
	}
	names := c.Key.split()
	if c.Kind == CreateKey {
		return root.with(b, names, true, func(*node) {}), nil
	}
	if c.Kind == SetValue {
		return root.with(b, names, true, func(n *node) { n.set(c.Value) }), nil
	}
	key, at := root.find(c.Key), fold(c.Value.Name)
	if key != nil && c.Kind == DeleteValue {
		if _, ok := key.values[at]; !ok {
			key = nil
		}
	}
	if key == nil {
		if c.Lenient {
			return root, nil
		}
		return nil, &changeError{*c, ErrNotFound}
	}
	switch c.Kind {
	case DeleteValue:
		return root.with(b, names, false, func(n *node) { n.unset(at) }), nil
	case DeleteValues:
		return root.with(b, names, false, func(n *node) {
			for at := range n.values {
				n.unset(at)
			}
		}), nil
	default: // DeleteKey
		last := len(names) - 1
		return root.with(b, names[:last], false, func(n *node) { n.drop(fold(names[last])) }), nil
	}
}
