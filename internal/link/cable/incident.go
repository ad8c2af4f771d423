package cable

import "encoding/binary"

// Incident is what goes wrong in a fabric of Ethernet switches, or that it is over, as the fabric tells adapters over UDP that ask for it.
// Adapters of the fabric's machine ask it themselves.
type Incident struct {
	Fabric [16]byte // where it is
	Number uint64   // in that fabric, from 1 on
	Over   bool
	Kind   string
	Text   string
}

const (
	kindLen = 16
	// mostText is how much of the text is told, so that the message fits every datagram of a session.
	mostText = 400
)

// wireIncident is an Incident without its fabric, which the session names, and its text, which follows.
type wireIncident struct {
	Number uint64
	Over   uint8
	Kind   [kindLen]byte
}

// Message returns the message that tells an adapter of the incident.
func (x *Incident) Message() []byte {
	w := wireIncident{Number: x.Number, Over: flag(x.Over)}
	copy(w.Kind[:kindLen-1], x.Kind)
	words := x.Text
	if len(words) > mostText {
		words = words[:mostText-3] + "..."
	}
	return append(encode(kindIncident, w), words...)
}

// parseIncident reads what a fabric tells of an incident. The error is a *messageError.
func parseIncident(b []byte) (Incident, error) {
	var w wireIncident
	fixed := min(1+binary.Size(w), len(b))
	if err := decode(b[:fixed], kindIncident, "incident", &w); err != nil {
		return Incident{}, err
	}
	return Incident{Number: w.Number, Over: w.Over != 0, Kind: text(w.Kind[:]), Text: text(b[fixed:])}, nil
}
