package device

import "github.com/softvpi/softvpi/internal/clock"

// exchange carries the messages of the local path between the engines of the adapters, disabled ones included: they may
// still have to tell their peers that they have left. It reports whether there were any; what they leave in the engines
// is delivered by completePeers.
func (h *Host) exchange(now clock.Time) (worked bool) {
	h.engines = h.engines[:0] // adapters may have been replaced
	for _, a := range h.adapters {
		if !a.port.broken {
			h.engines = append(h.engines, a.engine)
		}
	}
	for range transmitRounds {
		if !h.local.Run(now, h.engines) {
			break
		}
		worked = true
	}
	return worked
}
