package device

// notify schedules that a program is told of its events before the loop lock is released.
func (h *Host) notify(c *Client) {
	if !c.told {
		c.told = true
		h.unnotified = append(h.unnotified, c)
	}
}

// notifyAll tells programs of their events: the holder of the loop lock passes them on if that is possible
// without waiting, which saves waking a goroutine.
func (h *Host) notifyAll() {
	for i, c := range h.unnotified {
		h.unnotified[i] = nil
		c.told = false
		c.cfg.News()
		if !c.events.Empty() {
			c.events.Rouse()
		}
	}
	h.unnotified = h.unnotified[:0]
}
