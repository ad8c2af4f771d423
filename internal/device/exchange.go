package device

import "github.com/softvpi/softvpi/internal/clock"

// exchange carries the messages of the local path between the engines of the adapters, disabled ones included: they may
// still have to tell their peers that they have left. It reports whether there were any; what they leave in the engines
// is delivered by completePeers.
func (h *Host) exchange(now clock.Time) (worked bool) {
	for range transmitRounds {
		h.engines = h.engines[:0] // adapters may have been replaced, or woken by messages
		for _, p := range h.ports {
			for i := 0; i < len(p.awake) && !p.broken; i++ {
				h.engines = append(h.engines, p.awake[i].engine)
			}
		}
		if !h.local.Run(now, h.engines) {
			break
		}
		worked = true
	}
	return worked
}
