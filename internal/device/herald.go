package device

// tell has a program hear of its events before the baton is given back.
func (h *Host) tell(c *Client) {
	if !c.told {
		c.told = true
		h.heralds = append(h.heralds, c)
	}
}

// herald lets programs hear of their events: whoever has the baton passes them on, where that
// needs no waiting, and wakes no goroutine for them.
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
