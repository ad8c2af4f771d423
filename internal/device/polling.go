package device

import "github.com/softvpi/softvpi/internal/wait"

// polling is one way in which enabled adapters of a port want the loop to look for packets before it sleeps. What arrives at the port
// counts for all, so that those with equal settings, most often all, have one.
type polling struct {
	how    wait.Polling
	rounds wait.Rounds
}

// listPolling finds the ways anew, after an adapter has come or gone, or was enabled or disabled. Those that stay keep their rounds.
func (p *portLoop) listPolling() {
	was := p.polling
	p.polling = nil
	for _, a := range p.functions {
		if !a.enabled || !a.cfg.Polling.On || p.pollingOf(a) != nil {
			continue
		}
		w := polling{how: a.cfg.Polling}
		for i := range was {
			if was[i].how == w.how {
				w.rounds = was[i].rounds
			}
		}
		p.polling = append(p.polling, w)
	}
}

// pollingOf returns the way of an adapter, nil if it has none.
func (p *portLoop) pollingOf(a *adapter) *polling {
	for i := range p.polling {
		if p.polling[i].how == a.cfg.Polling {
			return &p.polling[i]
		}
	}
	return nil
}

// emptyRounds returns how many turns in a row have brought no packet, as far as the adapter's Polling counts them.
func (a *adapter) emptyRounds() uint32 {
	if w := a.port.pollingOf(a); w != nil {
		return w.rounds.Empty()
	}
	return 0
}

// polls records a turn of the port, and reports whether the loop should keep polling.
func (p *portLoop) polls() bool {
	polls := false
	for i := range p.polling {
		if w := &p.polling[i]; w.rounds.Round(&w.how, p.arrived) {
			polls = true
		}
	}
	for _, n := range p.nics {
		polls = polls || n.on() && n.f.Polls()
	}
	return polls
}
