package catalogue

import (
	"slices"
	"strings"
)

// Events are all the events: those of the manuals, and SoftVPI's own, whose source is sourceSoftVPI. It is read only.
var Events = slices.Concat(mlx5Events, mlx4Events, sensorEvents, softEvents)

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

// firstOwnID is where the IDs begin that we gave to events of the manuals that print none.
const firstOwnID = 0x8000

// EventFor returns the event of a symbol as adapters of a generation report it; where the generation has none, that of
// both generations. Events of no adapter are of both.
func EventFor(symbol string, g Generation) (*Event, bool) {
	for i := range Events {
		if Events[i].Symbol == symbol && Events[i].Generations&g != 0 {
			return &Events[i], true
		}
	}
	return nil, false
}

// String returns the severity as the event viewer names it.
func (s Severity) String() string {
	switch s {
	case Warning:
		return "Warning"
	case Error:
		return "Error"
	}
	return "Information"
}

// Severities are all of them, from the lightest.
var Severities = []Severity{Informational, Warning, Error}

// Message is the event's text with the values of its fields.
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

// event makes an event whose fields are those of its text, in the order in which they first stand there.
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

// raised says of an event that something raises it.
func raised(e Event) Event {
	e.Status = Built
	return e
}

// ofBoth says that adapters of both generations have it here.
func ofBoth(e Event) Event {
	e.Generations = Both
	return e
}
