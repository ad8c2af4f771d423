package trace

// Recorder is how an engine records, which knows neither the time of day nor whose engine it is: the ring of the loop that drives it,
// with both. A nil recorder records nothing, and is all that an engine has to compare when nothing is recorded.
type Recorder struct {
	ring    *Ring
	clock   func() int64 // Unix time in ns
	adapter int16
}

// NewRecorder returns a recorder for the engines of an adapter; nil if there is no ring.
func NewRecorder(r *Ring, adapter int16, clock func() int64) *Recorder {
	if r == nil {
		return nil
	}
	return &Recorder{ring: r, clock: clock, adapter: adapter}
}

// Wants reports whether records of that component and level are taken.
func (r *Recorder) Wants(c Component, l Level) bool { return r != nil && r.ring.Wants(c, l) }

// Note records a point with its arguments, in the order of its table row.
func (r *Recorder) Note(p Point, args ...uint32) {
	row := &points[p]
	if !r.Wants(row.component, row.level) {
		return
	}
	var a [maxArguments]uint32
	copy(a[:], args)
	r.ring.Add(Record{
		At: r.clock(), A: uint64(a[0])<<32 | uint64(a[1]), B: uint64(a[2])<<32 | uint64(a[3]),
		Code: uint32(p), Adapter: r.adapter, Component: row.component, Level: row.level,
	})
}
