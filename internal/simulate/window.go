package simulate

// window is how many packets a lean flow may have on the way once it has lost one: adapters start slowly again when they go back
// (RoCE slow restart), since what meets a full queue at the rate of the link is mostly lost again. Without losses there is none.
type window struct {
	size  int64 // packets; 0: as many as its rate allows
	grown int64 // packets that have been acknowledged since it grew
}

// leastWindow is the smallest: of fewer packets all may be lost, which nothing shows then but the time-out.
const leastWindow = 16

// lost halves the window, which begins with what is on the way.
func (w *window) lost(flight int64) {
	if w.size == 0 {
		w.size = flight
	}
	w.size, w.grown = max(w.size/2, leastWindow), 0
}

// grow makes the window a packet larger for each window that is acknowledged.
func (w *window) grow(acked int64) {
	if w.size == 0 {
		return
	}
	for w.grown += acked; w.grown >= w.size; w.size++ {
		w.grown -= w.size
	}
}

// full reports whether a flow waits for acknowledgements before it goes on.
func (x *leanSending) full() bool { return x.window.size > 0 && x.next-x.acked >= x.window.size }
