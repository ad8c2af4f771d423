package bench

// trace measures what the trace of a driver costs writes between two drivers, by UDP sockets: a session as the automatic one has it, at
// level information in 8 MB, beside one that records nothing. With records of packets it costs more by far (docs/dumps.md).
func (r *runner) trace() error {
	return r.inTurns(feature{part: "trace", name: "trace at level information", least: 0.98, set: r.startTrace, end: r.stopTrace})
}

// startTrace begins a session in the driver of a side.
func (r *runner) startTrace(p *path, x side, on bool) error {
	level := "off"
	if on {
		level = "information"
	}
	return r.configure(p, x, "mlxtool", "dbg", "trace", "start", level, "size=8")
}

// stopTrace ends it.
func (r *runner) stopTrace(p *path, x side) error {
	return r.configure(p, x, "mlxtool", "dbg", "trace", "stop")
}
