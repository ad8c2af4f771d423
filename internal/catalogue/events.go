package catalogue

import (
	"slices"
	"strings"
	"sync"
)

// Events lists all events: those of the manuals, and SoftVPI's own, whose source is sourceSoftVPI. They must not be modified.
func Events() []Event { return events() }

var events = sync.OnceValue(func() []Event { return slices.Concat(mlx5Events(), mlx4Events(), sensorEvents(), softEvents()) })

// The sources of events, as the manuals name them.
const (
	sourceMLX5       = "mlx5"             // the WinOF-2 driver
	sourceMLX4Bus    = "mlx4_bus"         // the WinOF bus driver
	sourceMLX4Eth    = "mlx4eth63"        // the WinOF Ethernet driver
	sourceIPoIB      = "ipoib6"           // the WinOF IPoIB driver
	sourceNDFilter   = "ndfltr"           // the WinOF NetworkDirect filter
	sourceOperations = "Mellanox-Drivers" // the log in which sensors report
	sourceSoftVPI    = "softvpi"          // events that the manuals do not have
)

// firstOwnID is the first of the IDs that we gave to events for which the manuals print none.
const firstOwnID = 0x8000

// EventFor returns the event of a symbol as adapters of a generation report it. Events of no adapter
// belong to both generations.
func EventFor(symbol string, g Generation) (*Event, bool) {
	all := events()
	for i := range all {
		if e := &all[i]; e.Symbol == symbol && e.Generations&g != 0 {
			return e, true
		}
	}
	return nil, false
}

// String returns the severity in the event viewer's words.
func (s Severity) String() string {
	switch s {
	case Warning:
		return "Warning"
	case Error:
		return "Error"
	}
	return "Information"
}

// Severities lists all severities, the least serious first.
var Severities = []Severity{Informational, Warning, Error}

// Message returns the event's text with the values of its fields filled in.
func (e *Event) Message(values map[string]string) string {
	var b strings.Builder
	rest := e.Text
	for {
		before, after, ok := strings.Cut(rest, "{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, tail, _ := strings.Cut(after, "}")
		b.WriteString(values[name])
		rest = tail
	}
}

// event returns an event whose fields are those of its text, in order of first appearance.
func event(id uint32, symbol, source string, g Generation, s Severity, text string, sources ...Source) Event {
	e := Event{ID: id, OwnID: id >= firstOwnID, Symbol: symbol, Source: source, Generations: g, Severity: s, Text: text, Sources: sources}
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, "{")
		if !ok {
			return e
		}
		name, tail, _ := strings.Cut(after, "}")
		if !slices.Contains(e.Fields, name) {
			e.Fields = append(e.Fields, name)
		}
		rest = tail
	}
}

// raised marks an event as one that is actually raised.
func raised(e Event) Event {
	e.Status = Built
	return e
}

// ofBoth marks an event as one that our adapters of both generations have.
func ofBoth(e Event) Event {
	e.Generations = Both
	return e
}
