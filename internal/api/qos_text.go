package api

import (
	"fmt"
	"io"
	"strings"
)

// summary describes in a line what was agreed.
func (q *QoSStatus) summary() string {
	o := &q.Operative
	with := q.DCBX.State
	switch {
	case q.DCBX.Off != "":
		with += ": " + q.DCBX.Off
	case q.DCBX.Peer != "":
		with = fmt.Sprintf("%s with %s by %s", with, q.DCBX.Peer, q.DCBX.Protocol)
	}
	return fmt.Sprintf("DCBX %s; PFC %s (%s), classes %s, bandwidths %s (%s), applications %s (%s)%s%s", with, o.PFC, o.PFCFrom, o.PrioTC,
		o.TCBandwidth, o.ETSFrom, o.Applications, o.ApplicationsFrom, sub("; not enforced: ", q.Enforced.Missing()),
		sub("; all priorities are one: ", q.Off))
}

// byDefault reports whether nobody has chosen anything.
func (o *OperativeQoS) byDefault() bool {
	return o.PFCFrom == "default" && o.ETSFrom == "default" && o.ApplicationsFrom == "default"
}

// writeStatus prints the line of softvpi status; nothing if the port does not speak LLDP, and has no settings.
func (q *QoSStatus) writeStatus(w io.Writer) {
	if q == nil || !q.LLDP.Running && q.Operative.byDefault() && q.Rates == "none" {
		return
	}
	fmt.Fprintf(w, "  priorities: %s\n", q.summary())
	if q.Rates != "none" {
		fmt.Fprintf(w, "  rates: %s Mb/s\n", q.Rates)
	}
	for i := range q.Peers {
		p := &q.Peers[i]
		fmt.Fprintf(w, "  neighbour: %s\n", p.line())
	}
}

// line describes a neighbour.
func (p *LLDPPeer) line() string {
	name := ""
	if p.Name != "" {
		name = " (" + clean(p.Name) + ")"
	}
	return fmt.Sprintf("chassis %s%s, port %s, from %s, DCBX %s, TTL %d s", clean(p.Chassis), name, clean(p.Port), p.MAC, or(p.DCBX, "none"), p.TTL)
}

// WriteText prints all of it; q may be nil.
func (q *QoSStatus) WriteText(w io.Writer) {
	if q == nil {
		fmt.Fprintln(w, "  no priorities: an InfiniBand port")
		return
	}
	o := &q.Own
	fmt.Fprintf(w, "  own:        willing %s, DCBX %s; PFC %s, classes %s, bandwidths %s, applications %s\n",
		map[bool]string{true: "on", false: "off"}[o.Willing], o.Protocol, o.PFC, o.PrioTC, o.TCBandwidth, o.Applications)
	fmt.Fprintf(w, "  operative:  %s\n", q.summary())
	for _, p := range q.Policies {
		fmt.Fprintf(w, "  policy:     %s: %s\n", clean(p.Name), p.Policy)
	}
	if q.Rates != "none" {
		fmt.Fprintf(w, "  rates:      %s Mb/s\n", q.Rates)
	}
	if q.Refused != "" {
		fmt.Fprintf(w, "  no LLDP:    %s\n", q.Refused)
		return
	}
	l := &q.LLDP
	state := map[bool]string{true: "runs", false: "does not run"}[l.Running]
	fmt.Fprintf(w, "  LLDP:       %s, transmit %s, receive %s%s%s\n", state, l.Transmit, l.Receive, sub(", the wire does not hear: ", l.Deaf),
		map[bool]string{true: ", more neighbours than are known"}[l.Crowded])
	if q.Counters != nil {
		c := q.Counters
		fmt.Fprintf(w, "              sent %d, received %d, %d in error, %d discarded; TLVs: %d discarded, %d unrecognized; %d aged out, %d shut down\n",
			c["sent_frames"], c["received_frames"], c["received_error_frames"], c["discarded_frames"], c["discarded_tlvs"],
			c["unrecognized_tlvs"], c["ageouts"], c["shutdowns"])
	}
	if s := q.DCBX; s.Peer != "" {
		fmt.Fprintf(w, "  peer:       ETS %s, PFC %s, applications %s\n", s.ETS.text(), s.PFC.text(), s.App.text())
	}
	for i := range q.Peers {
		p := &q.Peers[i]
		fmt.Fprintf(w, "  neighbour:  %s\n", p.line())
		for _, x := range [][2]string{{"description", p.Description}, {"port", p.PortName}, {"management", strings.Join(p.Management, " ")},
			{"capabilities", strings.Join(p.Capabilities, ", ")}, {"other TLVs", strings.Join(p.Others, "; ")}} {
			if x[1] != "" {
				fmt.Fprintf(w, "              %s: %s\n", x[0], clean(x[1]))
			}
		}
	}
}

func sub(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// text describes what a peer says of a feature.
func (f DCBXFeature) text() string {
	if !f.Peer {
		return "not heard"
	}
	s := map[bool]string{true: "willing", false: "not willing"}[f.PeerWilling]
	if f.Error {
		s += ", configured differently"
	}
	return s
}
