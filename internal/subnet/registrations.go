package subnet

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet/administration"
	"github.com/softvpi/softvpi/wire/mad"
)

// Revision returns a number that changes with the registrations.
func (s *SM) Revision() uint64 { return s.sa.Revision() }

// Administers reports whether ports register with this manager.
func (s *SM) Administers() bool { return s.state == mad.SMMaster && s.live != nil }

// Registrations returns what ports have registered with the administration.
func (s *SM) Registrations(now clock.Time) administration.Registrations {
	return s.sa.Registrations(now)
}

// recall adopts what ports had registered with an earlier manager, as far as the ports are there. It is
// called once, after discovery and before anything is set.
func (s *SM) recall() {
	if s.cfg.Recall == nil || s.recalled {
		return
	}
	s.recalled = true
	r, err := s.cfg.Recall()
	if err != nil {
		s.problem("what ports had registered is known in part at most: %v", err)
	}
	s.sa.Recall(s.now, s.cur, s.keysOf, &r)
	if len(r.GUIDs)+len(r.Groups)+len(r.Subscriptions)+len(r.Services) > 0 {
		groups, subscriptions, services, ports := s.sa.Counts()
		s.say(EventRecalled, "registrations of the past: %d multicast groups, %d subscriptions, %d services, GUIDs of %d ports", groups,
			subscriptions, services, ports)
	}
}
