package station

import (
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/neighbour"
)

// mostInquiry is how long a question is at most that is looked at: a solicitation with an option (RFC 4861, 4.3), in a VLAN.
const mostInquiry = 128

// inquired answers a host behind a function at the port that asks for the address of a station: what it sends does not come back from
// the wire, and the question goes there as well. The answer comes with the next frames that are handed up.
func (s *Set) inquired(o *frame.Out) {
	if o.Len() > mostInquiry {
		return
	}
	s.asking = appendFrame(s.asking[:0], o)
	if !neighbour.Concerns(s.asking) {
		return
	}
	s.mu.Lock()
	reply := s.engine.Inquire(s.reply[:0], s.asking)
	answered := reply != nil && s.loop.copies(reply)
	if reply != nil {
		s.reply = reply
	}
	s.mu.Unlock()
	if answered {
		s.hurry()
	}
}
