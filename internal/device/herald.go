package device

// tell schedules that a program is told of its events before the baton is released.
func (h *Host) tell(c *Client) {
	if !c.told {
		c.told = true
		h.heralds = append(h.heralds, c)
	}
}

// herald tells programs of their events: the holder of the baton passes them on if that is possible
// without waiting, which saves waking a goroutine.
func (h *Host) herald() {
	for i, c := range h.heralds {
		h.heralds[i] = nil
		c.told = false
		c.cfg.News()
		if !c.events.Empty() {
			c.events.Rouse()
		}
	}
	h.heralds = h.heralds[:0]
}
