package link

// State is what a wire is like now.
type State struct {
	// Up says that the wire has a carrier: its interface is up, or somebody has its other end.
	Up bool
	// Speed is in bit/s; 0: the wire has none of its own.
	Speed uint64
	// HalfDuplex says that the wire carries one direction at a time.
	HalfDuplex bool
}

// Carrier is a Link that knows when its wire comes and goes. It follows changes as Errors is called.
type Carrier interface {
	// WireState returns the state of the wire, without asking the system.
	WireState() State
}
