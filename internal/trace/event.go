package trace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Level is how important a record is: those of WPP, of which a lower one is more important.
type Level uint8

// The levels. Off records nothing, and Verbose everything, each turn of the loop included.
const (
	Off Level = iota
	Error
	Warning
	Information
	Verbose
)

var levelNames = [...]string{"off", "error", "warning", "information", "verbose"}

func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// ParseLevel returns the level of a name, or of its number.
func ParseLevel(s string) (Level, error) {
	for i, n := range levelNames {
		if strings.EqualFold(s, n) || s == fmt.Sprint(i) {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("level %q; allowed: %s, or 0 to %d", s, strings.Join(levelNames[:], ", "), len(levelNames)-1)
}

// Component is a part of the driver.
type Component uint8

// The components.
const (
	Driver    Component = iota // events of the log
	Commands                   // of programs
	Loop                       // turns of ports
	Transport                  // what queue pairs do
	CM                         // states of connections
	Link                       // what becomes of ports
	Components
)

var componentNames = [Components]string{"driver", "command", "loop", "transport", "cm", "link"}

// ComponentNames lists the names of all components, for messages.
func ComponentNames() string { return strings.Join(componentNames[:], ", ") }

func (c Component) String() string { return componentNames[c] }

// ParseComponent returns the component of a name.
func ParseComponent(s string) (Component, error) {
	for i, n := range componentNames {
		if strings.EqualFold(s, n) {
			return Component(i), nil
		}
	}
	return 0, fmt.Errorf("component %q; allowed: %s", s, ComponentNames())
}

// LevelError is a wrong level or component.
type LevelError struct {
	Of             string // the component whose level is wrong; All: all components; Unknown: the value is none
	Value, Allowed string
}

// What a LevelError is of.
const (
	All     = "all"
	Unknown = "unknown"
)

func (e *LevelError) Error() string {
	return fmt.Sprintf("level of %s components is %q; allowed: %s", e.Of, e.Value, e.Allowed)
}

// Field returns the field that is wrong, as the configuration and the management interface call it: level, levels, or levels.NAME.
func (e *LevelError) Field() string {
	switch e.Of {
	case All:
		return "level"
	case Unknown:
		return "levels"
	}
	return "levels." + e.Of
}

// ParseLevels returns the levels of all components: the one of a name, information if there is none, but for those that have another.
// Errors are *LevelError.
func ParseLevels(all string, others map[string]string) (levels [Components]Level, err error) {
	allowed := fmt.Sprintf("%s, or 0 to %d", strings.Join(levelNames[:], ", "), len(levelNames)-1)
	l, err := ParseLevel(cmp.Or(all, Information.String()))
	if err != nil {
		return levels, &LevelError{All, all, allowed}
	}
	levels = Uniform(l)
	for _, name := range slices.Sorted(maps.Keys(others)) {
		c, err := ParseComponent(name)
		if err != nil {
			return levels, &LevelError{Unknown, name, ComponentNames()}
		}
		if levels[c], err = ParseLevel(others[name]); err != nil {
			return levels, &LevelError{name, others[name], allowed}
		}
	}
	return levels, nil
}

// Record is what happened at one moment, or from it on. It has a fixed size, whatever it is.
type Record struct {
	At        int64 // Unix time in ns
	Took      int64 // ns; 0: a moment
	A, B      uint64
	Code      uint32 // which event, command ...
	Adapter   int16  // -1: none
	Component Component
	Level     Level
}
