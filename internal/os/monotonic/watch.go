package monotonic

// Watch reads the clock by the processor's counter of time, in less than half the time that the clock takes. It keeps one
// moment at which it knows both, and how long a tick is. It counts on from that moment for half a millisecond, then reads the
// clock again, so that it follows the clock wherever that is slewed. The length of a tick is measured between such moments; until two
// measurements in a row agree, and on machines whose counter is not what the kernel keeps its time by, each reading is one of
// the clock. clib/ipc/ticks.h does the same for programs in C.
//
// What it says is off by at most a microsecond, usually by less than a tenth of one, in either direction. It is for one
// goroutine at a time.
type Watch struct {
	at       moment
	rate     uint64 // nanoseconds a tick takes, in 2^-32
	most     uint64 // ticks that are counted on from at
	from     moment // where the measurement that runs began; ns is 0 if none does
	measured uint64 // the last measurement, like rate; 0: none
}

type moment struct{ ticks, ns uint64 }

const (
	// window is how long a moment is counted on from, in nanoseconds: a clock is slewed by 1/2000 at most.
	window = 500_000
	// The length of a tick is measured between moments that are so far apart, in nanoseconds: the errors of the two should not
	// matter, nor what the machine slept or was slewed long ago.
	shortest = 10_000_000
	longest  = 1_000_000_000
	// agree: measurements agree if they differ by less than this part.
	agree = 1000
)

// NewWatch finds out about the counter, if nobody has: that takes files, which the program may not be able to read later.
func NewWatch() *Watch {
	counted()
	return new(Watch)
}

// Now returns the clock in nanoseconds.
func (w *Watch) Now() uint64 {
	if now, ok := w.read(ticks()); ok {
		return now
	}
	return w.look()
}

// read returns the clock at a reading of the counter, if it is counted on so far. A counter that went back is far ahead in
// unsigned numbers.
func (w *Watch) read(ticks uint64) (uint64, bool) {
	gone := ticks - w.at.ticks
	return w.at.ns + gone*w.rate>>32, gone < w.most
}

// look reads the clock, between two readings of the counter that must not be too far apart.
func (w *Watch) look() uint64 {
	if !counted() {
		return Now()
	}
	now := uint64(0)
	for range 4 {
		before := ticks()
		now = Now()
		if apart := ticks() - before; apart <= width() {
			w.set(moment{before + apart/2, now})
			return now
		}
	}
	w.most = 0 // interrupted each time: the next one looks again
	return now
}

// set has the watch count on from a moment, if it knows how long a tick is.
func (w *Watch) set(m moment) {
	w.measure(m)
	w.at, w.most = m, 0
	if w.rate > 0 {
		w.most = window << 32 / w.rate
	}
}

// measure goes on measuring how long a tick is.
func (w *Watch) measure(m moment) {
	ns, ticks, before := m.ns-w.from.ns, m.ticks-w.from.ticks, w.measured
	switch {
	case w.from.ns != 0 && ns < shortest:
		return
	case w.from.ns == 0 || ns > longest || ticks == 0:
		w.measured, w.rate = 0, 0
	default:
		w.measured, w.rate = ns<<32/ticks, 0
		if max(w.measured, before)-min(w.measured, before) < before/agree {
			w.rate = w.measured
		}
	}
	w.from = m
}
