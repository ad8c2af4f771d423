package ring

// News are two words in the header of a program's doorbell queue, of what the driver
// sends the program without having been asked. A program without a thread that reads
// sees by a look at one word that there is something to read, and the driver by the
// other that the program does read: it sends no more than the stream holds.
type News struct{ h *header }

// OpenNews opens the words in b, the memory of a doorbell queue.
func OpenNews(b []byte) (News, error) {
	r, err := open(b, DoorbellGeometry(1), 8)
	return News{r.h}, err
}

// Tell counts a frame that was sent. Driver's side.
func (n News) Tell() { n.h.told.Add(1) }

// Waiting returns how many frames the program has not taken, by its own word: one
// that says nonsense seems to have taken none. Driver's side.
func (n News) Waiting() uint32 { return n.h.told.Load() - n.h.taken.Load() }

// Take counts a frame that was taken. Program's side.
func (n News) Take() { n.h.taken.Add(1) }
