// Package catalogue declares, once and as data, every registry key, counter, event and driver parameter
// that the WinOF and WinOF-2 manuals name: its names, scope, type, default of each generation, limits,
// unit, when a change takes effect, what it means, and the manual and section that it comes from. The
// registry, the counters, the event log, the tools, the pages and the reference documents are all driven
// from it. The package holds no state and does no input or output.
package catalogue

// Generation is the generation of an adapter, which decides its keys, their defaults, and the names that
// tools and events show. A set of generations is their bitwise or.
type Generation uint8

const (
	// MLX5 is the ConnectX-4 class and later (WinOF-2), the default.
	MLX5 Generation = 1 << iota
	// MLX4 is the ConnectX-3 class (WinOF).
	MLX4
	// Both is every generation.
	Both = MLX5 | MLX4
)

// Scope says what a key, a counter or an event belongs to. A set of scopes is their bitwise or.
type Scope uint16

const (
	// perDriver is one for all adapters of the driver.
	perDriver Scope = 1 << iota
	// perAdapter is one for each adapter.
	perAdapter
	// perPort is one for each port.
	perPort
	// ofEthernet exists where the port is Ethernet.
	ofEthernet
	// ofIPoIB exists where the port is InfiniBand and carries IP.
	ofIPoIB
	// ofVF exists for a virtual function.
	ofVF
	// perMachine is one for the machine: keys of the operating system's own network stack.
	perMachine
)

// Type is the type of a registry value (winnt.h's names).
type Type uint8

const (
	// DWORD is REG_DWORD: 32 bits.
	DWORD Type = iota
	// String is REG_SZ. The standardized keywords ("*RSS") are strings that hold a number.
	String
	// NumericString is REG_SZ holding a decimal number, which Min and Max bound.
	NumericString
	// Binary is REG_BINARY.
	Binary
	// MultiString is REG_MULTI_SZ.
	MultiString
	// QWORD is REG_QWORD: 64 bits.
	QWORD
)

// Effect says when a changed key is taken up.
type Effect uint8

const (
	// AtRestart is when the adapter (or, for keys of the driver, the driver) starts again.
	AtRestart Effect = iota
	// AtOnce is while it runs: the manuals' "can be changed dynamically".
	AtOnce
)

// Status says how far the feature behind an entry is built.
type Status uint8

const (
	// StoredOnly is validated and stored, and acts on nothing yet.
	StoredOnly Status = iota
	// Built acts as described.
	Built
	// ReadOnly is shown, and cannot be set.
	ReadOnly
)

// Source is where a fact comes from: one of the manuals and its section.
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
	// Name as the manuals print it, for each generation that has it.
	Name        string
	Aliases     []string
	Generations Generation
	// Short is the set's name on command lines and in metric names: lower case, words joined by "_".
	Short string
	// Instances says what there is one of: "adapter", "port", "priority", "cpu", "vport", "function", "interface".
	Instances string
	// Reset says what sets the set's counters back to 0.
	Reset       ResetRule
	Description string
	Sources     []Source
	Counters    []Counter
}

// ResetRule says what sets counters back to 0.
type ResetRule uint8

const (
	// resetAtRestart is a restart of the adapter or of the driver (WinOF 5.50, 4.9.4: "the card's restart or
	// machine power-cycle").
	resetAtRestart ResetRule = iota
	// ResetOnDemand is a restart too, and whoever asks for it (mlxtool show perfstats: WinOF 5.50, 5.5.3.10).
	ResetOnDemand
)

// Counter is a counter of a set.
type Counter struct {
	Name        string // as the manuals print it
	Short       string // as in metric names: lower case, words joined by "_", unit last
	Kind        CounterKind
	Unit        string // "bytes", "packets", "bytes/s", "packets/s", "us", "%", ...
	Description string
	// Status is Built where the counter has a value, and StoredOnly where what it counts is not built yet.
	Status Status
	// Generations that have the counter, where they are not those of the set.
	Generations Generation
	// Sources where they are not those of the set.
	Sources []Source
	// Of names what a Rate or Ratio is computed from: the Short of the totals, in this set. A Rate without it has a
	// total of its own, which no counter of the set shows.
	Of []string
	// Keeps says that the counter is not set back with its set's reset.
	Keeps bool
	// Only names the one instance that has a value, as its label does ("untagged"), "" where all have.
	Only string
}

// Severity of an event.
type Severity uint8

const (
	// Informational tells what happened.
	Informational Severity = iota
	// Warning tells of something that needs attention.
	Warning
	// Error tells of something that failed.
	Error
)

// Event is an event that the drivers report.
type Event struct {
	// ID of the event, by which scripts find it. Source and ID together are unique.
	ID uint32
	// OwnID says that the manuals print no ID for the event, and ID is one of ours, from 0x8000 on.
	OwnID bool
	// Symbol is a name for it in programs: CamelCase.
	Symbol      string
	Source      string // "mlx4_bus", "mlx4eth", "ipoib", "mlx5"...: the event source as the manuals name it
	Generations Generation
	Severity    Severity
	// Fields are the names of the values that its text takes, in order.
	Fields []string
	// Text of the event in our own words, with {Field} where a value stands.
	Text    string
	Status  Status
	Sources []Source
}
