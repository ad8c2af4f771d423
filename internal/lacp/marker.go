package lacp

import "github.com/softvpi/softvpi/wire/lacp"

// The marker protocol (6.5): whoever moves a conversation to another link sends a marker by the one that it leaves; the response says that
// all that was sent there before has been collected.

// answer is the response to a marker.
type answer struct {
	port   int
	marker lacp.Marker
}

// mostAnswers is how many responses wait to be sent; of more the oldest is not sent. Nobody needs a marker's response who asks again
// (6.5.4.1).
const mostAnswers = 64

// hearMarker takes a marker, or the response to one.
func (s *System) hearMarker(i int, m lacp.Marker) {
	if p := &s.ports[i]; m.Response {
		if p.marked != 0 && !p.marks && m == s.marker(p, true) {
			p.answered = p.marked
		}
		return
	}
	s.respond(i, m)
}

// respond is the marker responder (6.5.4.2): what it is sent comes back as a response.
func (s *System) respond(i int, m lacp.Marker) {
	s.ports[i].markers++
	m.Response = true
	if len(s.answers) == mostAnswers {
		s.answers = s.answers[:copy(s.answers, s.answers[1:])]
	}
	s.answers = append(s.answers, answer{i, m})
}

// Mark has a port send a marker (6.5.4.1), and returns its number, which is not 0. It takes the place of the one before.
func (s *System) Mark(i int) uint32 {
	p := &s.ports[i]
	if p.marked++; p.marked == 0 {
		p.marked = 1
	}
	p.marks = p.up
	return p.marked
}

// Answered returns the number of the port's marker that its partner answered last; 0: it has answered none. All that the port has sent
// before that has been collected.
func (s *System) Answered(i int) uint32 { return s.ports[i].answered }

// marker is the port's newest, or the response that it gets.
func (s *System) marker(p *port, response bool) lacp.Marker {
	return lacp.Marker{Response: response, Port: p.actor.Port, System: s.cfg.System, Transaction: p.marked}
}

// transmitMarker returns a response or a marker that is to be sent now, and by which port; nil: there is none.
func (s *System) transmitMarker() (port int, frame []byte) {
	if len(s.answers) > 0 {
		a := s.answers[0]
		s.answers = s.answers[:copy(s.answers, s.answers[1:])]
		return a.port, a.marker.Frame(s.ports[a.port].mac)
	}
	for i := range s.ports {
		if p := &s.ports[i]; p.marks {
			p.marks = false
			m := s.marker(p, false)
			return i, m.Frame(p.mac)
		}
	}
	return 0, nil
}

// waitsToMark reports whether there is a response or a marker to be sent.
func (s *System) waitsToMark() bool {
	for i := range s.ports {
		if s.ports[i].marks {
			return true
		}
	}
	return len(s.answers) > 0
}
