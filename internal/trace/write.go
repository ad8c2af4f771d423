package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Names gives records their words.
type Names interface {
	// Name returns what happened, and with it what else is known, as a JSON object's members.
	Name(Record) (name string, args map[string]any)
	// Adapter returns the name of an adapter.
	Adapter(index int16) string
}

// A Writer writes records in the order of time as a file of at most so many bytes, as the manual's trace file is circular and has a
// maximal size: the oldest records for which there is no room are left out. It returns how many those are.
type Writer func(w io.Writer, list []Record, n Names, most int) (leftOut int, err error)

// newest returns the records at the end of the list that fit into room bytes, of which size says how many each takes.
func newest(list []Record, room int, size func(Record) (int, error)) ([]Record, error) {
	for n := len(list); n > 0; n-- {
		b, err := size(list[n-1])
		if err != nil {
			return nil, err
		}
		if room -= b; room < 0 {
			return list[n:], nil
		}
	}
	return list, nil
}

// object is an event of the Trace Event Format. A process is the driver (pid 1) or an adapter (2 and up), a thread a component.
type object struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"` // X: complete, i: instant, M: metadata
	Time     float64        `json:"ts"` // us
	Took     *float64       `json:"dur,omitempty"`
	PID      int            `json:"pid"`
	TID      int            `json:"tid"`
	Scope    string         `json:"s,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// separator is between events.
const separator = ",\n"

// perfetto writes records as a JSON trace, whose times count from origin, in Unix ns.
type perfetto struct {
	names  Names
	origin int64
}

// WriteJSON is the Writer of a trace that Perfetto reads.
func WriteJSON(w io.Writer, list []Record, n Names, most int) (leftOut int, err error) {
	p := perfetto{names: n}
	if len(list) > 0 {
		p.origin = list[0].At // also if there is no room for that record: what the others take does not depend on it
	}
	const head = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
	tail := func(leftOut int) string {
		return fmt.Sprintf("\n],\"otherData\":{\"began\":%q,\"leftOut\":\"%d\"}}\n", time.Unix(0, p.origin).UTC().Format(time.RFC3339Nano), leftOut)
	}
	fit, err := newest(list, most-len(head)-len(tail(len(list))), p.sizes())
	if err != nil {
		return 0, err
	}
	leftOut = len(list) - len(fit)
	b := bufio.NewWriter(w)
	b.WriteString(head)
	between, known := "", map[int16]bool{}
	for _, r := range fit {
		events, err := p.events(r, known)
		if err != nil {
			return 0, err
		}
		for _, e := range events {
			b.WriteString(between)
			b.Write(e)
			between = separator
		}
	}
	b.WriteString(tail(leftOut))
	return leftOut, b.Flush()
}

// sizes returns what says how many bytes a record takes, with the names of its adapter for the first one of each.
func (p *perfetto) sizes() func(Record) (int, error) {
	known := map[int16]bool{}
	return func(r Record) (n int, err error) {
		events, err := p.events(r, known)
		for _, e := range events {
			n += len(e) + len(separator)
		}
		return n, err
	}
}

// events returns the JSON events of a record, after those that name its process and threads if these are not known yet.
func (p *perfetto) events(r Record, known map[int16]bool) (list [][]byte, err error) {
	var all []object
	if !known[r.Adapter] {
		known[r.Adapter] = true
		all = p.process(r.Adapter)
	}
	for _, o := range append(all, p.event(r)) {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}

// event returns what happened.
func (p *perfetto) event(r Record) object {
	name, args := p.names.Name(r)
	o := object{Name: name, Category: r.Component.String(), Phase: "i", Scope: "t", Time: float64(r.At-p.origin) / 1e3,
		PID: int(r.Adapter) + 2, TID: int(r.Component) + 1, Args: args}
	if r.Took > 0 {
		took := float64(r.Took) / 1e3
		o.Phase, o.Scope, o.Took = "X", "", &took
	}
	return o
}

// process returns the names of a process and its threads.
func (p *perfetto) process(adapter int16) []object {
	who := "driver"
	if adapter >= 0 {
		who = p.names.Adapter(adapter)
	}
	list := []object{{Name: "process_name", Phase: "M", PID: int(adapter) + 2, Args: map[string]any{"name": who}}}
	for c := range Components {
		list = append(list, object{Name: "thread_name", Phase: "M", PID: int(adapter) + 2, TID: int(c) + 1, Args: map[string]any{"name": c.String()}})
	}
	return list
}

// WriteText is the Writer of lines: time, level, component, adapter, what happened, how long it took, and what else is known.
func WriteText(w io.Writer, list []Record, n Names, most int) (leftOut int, err error) {
	fit, err := newest(list, most, func(r Record) (int, error) {
		text, err := line(r, n)
		return len(text), err
	})
	if err != nil {
		return 0, err
	}
	b := bufio.NewWriter(w)
	for _, r := range fit {
		text, err := line(r, n)
		if err != nil {
			return 0, err
		}
		b.Write(text)
	}
	return len(list) - len(fit), b.Flush()
}

// line returns a record as a line.
func line(r Record, n Names) ([]byte, error) {
	who := "-"
	if r.Adapter >= 0 {
		who = n.Adapter(r.Adapter)
	}
	name, args := n.Name(r)
	b := fmt.Appendf(nil, "%s %s %s %q %s", time.Unix(0, r.At).UTC().Format("2006-01-02T15:04:05.000000000Z"), r.Level, r.Component, who, name)
	if r.Took > 0 {
		b = fmt.Appendf(b, " took %v", time.Duration(r.Took))
	}
	if len(args) > 0 {
		text, err := json.Marshal(args) // whose members are sorted
		if err != nil {
			return nil, err
		}
		b = fmt.Appendf(b, " %s", text)
	}
	return append(b, '\n'), nil
}
