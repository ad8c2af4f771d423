package live

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/state"
)

// mostPart is how long the text of a part of the state may be about.
const mostPart = 90 << 10

// Incidents is what Part is asked for to tell of incidents alone.
const Incidents = "incidents"

// Part returns the state of ports as JSON, from a number on, the Ethernet's first: as many as fit a message; or Incidents. The caller holds
// the lock.
func (r *Rack) Part(first string) (string, error) {
	if first == Incidents {
		p := state.Part{Now: int64(r.Now()), Ports: []state.Port{}}
		if r.lan != nil {
			p.Timed, p.Deadlock, p.Incidents = r.lan.Timed(), r.lan.Deadlock(), r.lan.Incidents()
		}
		b, err := json.Marshal(&p)
		return string(b), err
	}
	from, err := strconv.Atoi(first)
	if err != nil || from < 0 {
		return "", fmt.Errorf("number %q; allowed: 0 and above, or incidents", first)
	}
	now := r.Now()
	p := part{Part: state.Part{Now: int64(now), Ports: []state.Port{}}, from: from}
	if r.lan != nil {
		if p.Timed = r.lan.Timed(); from == 0 {
			p.Deadlock, p.Incidents = r.lan.Deadlock(), r.lan.Incidents()
		}
		r.lan.Each(func(e ethernet.End) { p.add(func() state.Port { return r.lan.State(now, e) }) })
	}
	names := r.fabric.Names()
	r.fabric.Each(func(at fabric.Place) { p.add(func() state.Port { return r.portState(at, names) }) })
	b, err := json.Marshal(&p.Part)
	return string(b), err
}

// part is a part of the state that is made.
type part struct {
	state.Part
	from, at, size int
}

// add adds the next port, if it is in the part.
func (p *part) add(port func() state.Port) {
	if p.at++; p.at <= p.from || p.Next > 0 {
		return
	}
	if p.size > mostPart {
		p.Next = p.at - 1
		return
	}
	s := port()
	if b, err := json.Marshal(&s); err == nil { // it has nothing that cannot be
		p.size += len(b)
	}
	p.Ports = append(p.Ports, s)
}

// portState returns the state of an InfiniBand port.
func (r *Rack) portState(at fabric.Place, names []string) state.Port {
	s := r.fabric.State(at, names)
	if p := r.ports[at]; p != nil {
		s.Program = p.program
	}
	return s
}
