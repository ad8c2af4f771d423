package ring

// News are two words in the header of a program's doorbell queue that concern what the driver sends the
// program unasked. One tells a program without a reading thread, at the cost of a load, that there is
// something to read; the other tells the driver that the program does read, so that it sends no more than
// the stream holds.
type News struct{ h *header }

// OpenNews opens the words in b, the memory of a doorbell queue.
func OpenNews(b []byte) (News, error) {
	r, err := open(b, DoorbellGeometry(1), 8)
	return News{r.h}, err
}

// Tell counts a frame that was sent. Driver side only.
func (n News) Tell() { n.h.told.Add(1) }

// Waiting returns how many frames the program has not taken according to its own word; with an impossible
// value it appears to have taken none. Driver side only.
func (n News) Waiting() uint32 { return n.h.told.Load() - n.h.taken.Load() }

// Take counts a frame that was taken. Program side only.
func (n News) Take() { n.h.taken.Add(1) }
