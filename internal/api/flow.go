package api

import (
	"fmt"
	"io"
)

// FlowControlStatus is which pause frames an adapter's port obeys and sends.
type FlowControlStatus struct {
	// Refused is why the port has no flow control; what follows is empty then.
	Refused string `json:"refused,omitempty"`
	// Asked says that keys ask for it although it is refused.
	Asked bool `json:"asked,omitempty"`
	// Obeys are the pauses at which the port is silent, and Asks those that it sends: none, global pause, or PFC with its priorities.
	Obeys string `json:"obeys"`
	Asks  string `json:"asks"`
	// Paused are the priorities at which the port is silent now, and Pausing those at which its peer was told to be.
	Paused  string `json:"paused"`
	Pausing string `json:"pausing"`
	// Stalled is why flow control is off for now.
	Stalled string `json:"stalled,omitempty"`
	// Dropless is how long a packet waits in dropless mode if it finds no receive; empty: the mode is off. Waiting are those that do.
	Dropless string `json:"dropless,omitempty"`
	Waiting  int    `json:"waiting,omitempty"`
	// Deaf is why the wire does not hear pauses.
	Deaf string `json:"deaf,omitempty"`
}

// text describes it in a line.
func (f *FlowControlStatus) text() string {
	if f.Refused != "" {
		return "none: " + f.Refused
	}
	s := fmt.Sprintf("obeys %s, asks %s", f.Obeys, f.Asks)
	if f.Paused != "none" {
		s += "; paused: " + f.Paused
	}
	if f.Pausing != "none" {
		s += "; pauses its peer: " + f.Pausing
	}
	s += sub("; off: ", f.Stalled) + sub("; dropless mode, for ", f.Dropless)
	if f.Waiting > 0 {
		s += fmt.Sprintf(", %d packets wait", f.Waiting)
	}
	return s + sub("; the wire does not hear pauses: ", f.Deaf)
}

// plain reports whether there is nothing to say: neither pauses, nor anybody who asks for them.
func (f *FlowControlStatus) plain() bool {
	return f == nil || f.Refused != "" && !f.Asked || f.Refused == "" && f.Obeys == "none" && f.Asks == "none" && f.Dropless == "" && f.Stalled == ""
}

// writeStatus prints the line of softvpi status; nothing if there is no flow control, and none is asked for.
func (f *FlowControlStatus) writeStatus(w io.Writer) {
	if !f.plain() {
		fmt.Fprintf(w, "  flow control: %s\n", f.text())
	}
}

// WriteText prints the line of softvpi qos show; f may be nil.
func (f *FlowControlStatus) WriteText(w io.Writer) {
	if f != nil {
		fmt.Fprintf(w, "  pauses:     %s\n", f.text())
	}
}
