// Package catalogue declares, once and as data, every registry key, counter, event and driver parameter
// that the WinOF and WinOF-2 manuals name: its names, scope, type, default per generation, limits, unit,
// when a change takes effect, what it means, and the manual and section it comes from. It drives the
// registry, the counters, the event log, the tools, the pages and the reference documents. The package
// holds no state and does no input or output.
package catalogue

// Generation is the generation of an adapter, which determines its keys, their defaults, and the names
// that tools and events show. A set of generations is their bitwise or.
type Generation uint8

const (
	// MLX5 is the ConnectX-4 class and later (WinOF-2), the default.
	MLX5 Generation = 1 << iota
	// MLX4 is the ConnectX-3 class (WinOF).
	MLX4
	// Both is all generations.
	Both = MLX5 | MLX4
)

// PartID returns the number of the card that stands for a generation in the manuals' samples (mt4103,
// mt4115), which tools and events show.
func (g Generation) PartID() int {
	if g == MLX4 {
		return 4103 // ConnectX-3 Pro
	}
	return 4115 // ConnectX-4
}

// Scope says what a key, a counter or an event belongs to. A set of scopes is their bitwise or.
type Scope uint16

const (
	// perDriver means one for all adapters of the driver.
	perDriver Scope = 1 << iota
	// perAdapter means one for each adapter.
	perAdapter
	// perPort means one for each port.
	perPort
	// ofEthernet means that it exists if the port is Ethernet.
	ofEthernet
	// ofIPoIB means that it exists if the port is InfiniBand and carries IP.
	ofIPoIB
	// ofVF means that it exists for a virtual function.
	ofVF
	// perMachine means one for the machine: keys of the operating system's own network stack.
	perMachine
)

// Type is the type of a registry value (winnt.h's names).
type Type uint8

const (
	// DWORD is REG_DWORD: 32 bits.
	DWORD Type = iota
	// String is REG_SZ. The standardized keywords ("*RSS") are strings that hold a number.
	String
	// NumericString is REG_SZ holding a decimal number, limited by Min and Max.
	NumericString
	// Binary is REG_BINARY.
	Binary
	// MultiString is REG_MULTI_SZ.
	MultiString
	// QWORD is REG_QWORD: 64 bits.
	QWORD
)

// Effect says when a changed key takes effect.
type Effect uint8

const (
	// AtRestart means when the adapter (or, for keys of the driver, the driver) starts again.
	AtRestart Effect = iota
	// AtOnce means while it runs: the manuals' "can be changed dynamically".
	AtOnce
)

// Status says how far the feature behind an entry is implemented.
type Status uint8

const (
	// StoredOnly means validated and stored, but without effect yet.
	StoredOnly Status = iota
	// Built means implemented as described.
	Built
	// ReadOnly means shown, but not settable.
	ReadOnly
	// Inherent means validated and stored; what it switches is always so in a software adapter, or there is nothing to switch.
	// The description says which.
	Inherent
)

// Source is where a fact comes from: a manual and its section.
type Source struct {
	Manual  string // "WinOF 5.50", "WinOF-2 1.21", "WinOF-2 Ethernet a", "WinOF-2 Ethernet b", "WinOF-2 24.4 virtualization"
	Section string // number and title, as printed
}

// CounterKind says how a counter's value is read.
type CounterKind uint8

const (
	// Total only grows, until it is reset.
	Total CounterKind = iota
	// Rate is per second, computed over the reader's interval from totals.
	Rate
	// Level goes up and down.
	Level
	// Ratio is a share, 0 to 100, computed over the reader's interval.
	Ratio
)

// CounterSet is a set of counters, as perfmon lists them.
type CounterSet struct {
	// Name is the set's name as the manuals print it, for each generation that has it.
	Name        string
	Aliases     []string
	Generations Generation
	// Short is the set's name on command lines and in metric names: lower case, words joined by "_".
	Short string
	// Instances says what the set has an instance for: "adapter", "device", "port", "priority", "cpu", "queue",
	// "vport", "function", "interface", "team", "member", "vlan", "overlay", "queues" (those of an adapter, together).
	Instances string
	// Reset says what resets the set's counters to 0.
	Reset       ResetRule
	Description string
	Sources     []Source
	Counters    []Counter
}

// ResetRule says what resets counters to 0.
type ResetRule uint8

const (
	// ResetAtRestart means a restart of the adapter or of the driver (WinOF 5.50, 4.9.4: "the card's
	// restart or machine power-cycle").
	ResetAtRestart ResetRule = iota
	// ResetOnDemand means a restart or a request (mlxtool show perfstats: WinOF 5.50, 5.5.3.10).
	ResetOnDemand
)

// Counter is a counter of a set.
type Counter struct {
	Name        string // as the manuals print it
	Short       string // as in metric names: lower case, words joined by "_", unit last
	Kind        CounterKind
	Unit        string // "bytes", "packets", "bytes/s", "packets/s", "us", "%", ...
	Description string
	// Status is Built if the counter has a value, and StoredOnly if what it counts is not implemented yet.
	Status Status
	// Generations that have the counter, if they differ from those of the set.
	Generations Generation
	// Sources, if they differ from those of the set.
	Sources []Source
	// Of lists what a Rate or Ratio is computed from: the Short of the totals, in this set. A Rate without
	// it has a total of its own, which no counter of the set shows.
	Of []string
	// Keeps says that a reset of the set does not reset the counter.
	Keeps bool
	// Whole says that the counter is of the whole device: its value is that of all ports together, at each.
	Whole bool
}

// Severity of an event.
type Severity uint8

const (
	// Informational reports what happened.
	Informational Severity = iota
	// Warning reports something that needs attention.
	Warning
	// Error reports a failure.
	Error
)

// Event is an event that the drivers report.
type Event struct {
	// ID of the event, by which scripts identify it. Source and ID together are unique.
	ID uint32
	// OwnID says that the manuals print no ID for the event, and ID is one of ours, from 0x8000 on.
	OwnID bool
	// Symbol is the event's name in programs: CamelCase.
	Symbol      string
	Source      string // "mlx4_bus", "mlx4eth", "ipoib", "mlx5"...: the event source as the manuals name it
	Generations Generation
	Severity    Severity
	// Fields are the names of the values in its text, in order.
	Fields []string
	// Text of the event in our own words, with {Field} in place of a value.
	Text    string
	Status  Status
	Sources []Source
}
