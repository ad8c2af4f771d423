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

// WriteJSON writes records in the order of time as a trace that Perfetto reads.
func WriteJSON(w io.Writer, list []Record, n Names) error {
	b := bufio.NewWriter(w)
	b.WriteString("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")
	first := true
	put := func(o object) error {
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if !first {
			b.WriteString(",\n")
		}
		first = false
		_, err = b.Write(text)
		return err
	}
	var origin int64
	if len(list) > 0 {
		origin = list[0].At
	}
	known := map[int16]bool{}
	for _, r := range list {
		if !known[r.Adapter] {
			known[r.Adapter] = true
			if err := process(put, r.Adapter, n); err != nil {
				return err
			}
		}
		name, args := n.Name(r)
		o := object{Name: name, Category: r.Component.String(), Phase: "i", Scope: "t", Time: float64(r.At-origin) / 1e3,
			PID: int(r.Adapter) + 2, TID: int(r.Component) + 1, Args: args}
		if r.Took > 0 {
			took := float64(r.Took) / 1e3
			o.Phase, o.Scope, o.Took = "X", "", &took
		}
		if err := put(o); err != nil {
			return err
		}
	}
	fmt.Fprintf(b, "\n],\"otherData\":{\"began\":%q}}\n", time.Unix(0, origin).UTC().Format(time.RFC3339Nano))
	return b.Flush()
}

// process names a process and its threads.
func process(put func(object) error, adapter int16, n Names) error {
	who := "driver"
	if adapter >= 0 {
		who = n.Adapter(adapter)
	}
	if err := put(object{Name: "process_name", Phase: "M", PID: int(adapter) + 2, Args: map[string]any{"name": who}}); err != nil {
		return err
	}
	for c := range Components {
		name := map[string]any{"name": c.String()}
		if err := put(object{Name: "thread_name", Phase: "M", PID: int(adapter) + 2, TID: int(c) + 1, Args: name}); err != nil {
			return err
		}
	}
	return nil
}

// WriteText writes records as lines: time, level, component, adapter, what happened, how long it took, and what else is known.
func WriteText(w io.Writer, list []Record, n Names) error {
	b := bufio.NewWriter(w)
	for _, r := range list {
		who := "-"
		if r.Adapter >= 0 {
			who = n.Adapter(r.Adapter)
		}
		name, args := n.Name(r)
		fmt.Fprintf(b, "%s %s %s %q %s", time.Unix(0, r.At).UTC().Format("2006-01-02T15:04:05.000000000Z"), r.Level, r.Component, who, name)
		if r.Took > 0 {
			fmt.Fprintf(b, " took %v", time.Duration(r.Took))
		}
		if len(args) > 0 {
			text, err := json.Marshal(args) // whose members are sorted
			if err != nil {
				return err
			}
			fmt.Fprintf(b, " %s", text)
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}
