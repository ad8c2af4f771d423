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
	// PerDriver is one for all adapters of the driver.
	PerDriver Scope = 1 << iota
	// PerAdapter is one for each adapter.
	PerAdapter
	// PerPort is one for each port.
	PerPort
	// OnEthernet exists where the port is Ethernet.
	OnEthernet
	// OnIPoIB exists where the port is InfiniBand and carries IP.
	OnIPoIB
	// OnVF exists for a virtual function.
	OnVF
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

// Group names the table of the manuals that an entry stands in.
type Group string

// Source is where a fact comes from: one of the manuals and its section.
type Source struct {
	Manual  string // "WinOF 5.50", "WinOF-2 1.21", "WinOF-2 Ethernet a", "WinOF-2 Ethernet b", "WinOF-2 24.4 virtualization"
	Section string // number and title, as printed
}

// Choice is one of the values of an enumerated key.
type Choice struct {
	Value   uint64
	Name    string // as a page shows it
	Meaning string
}

// Default is the value of a key that is not set.
type Default struct {
	// Auto means that the value is derived from something else, which Text describes.
	Auto bool
	// Number is the default of numeric keys.
	Number uint64
	// Text is the default of other keys; of automatic ones, what it is derived from.
	Text string
}

// Key is a registry key.
type Key struct {
	// Name is the value's name as it stands in the registry ("*JumboPacket", "roce_mode").
	Name string
	// Aliases are other spellings that the manuals use and that are accepted.
	Aliases []string
	// Path is the key that holds the value below Base, "" for the adapter's own class key.
	Path string
	// Base is the root that Path continues.
	Base  Base
	Group Group
	// Generations that have the key.
	Generations Generation
	Scope       Scope
	Type        Type
	// Defaults by generation; one entry with Both where they agree. A key that a scope gives another
	// default (IPoIB) names it in IPoIB.
	Defaults map[Generation]Default
	// IPoIB is the default on IPoIB ports where it differs.
	IPoIB *Default
	// Min and Max bound numeric keys, both 0 where Choices do, or where the type's own range is meant.
	Min, Max uint64
	// Step is the multiple that a value must be of, 0 for any.
	Step uint64
	// PowerOf2 asks for a power of two.
	PowerOf2 bool
	// Choices are the values of an enumerated key.
	Choices []Choice
	// Unit of the value: "packets", "us", "bytes"...; "" for none.
	Unit   string
	Effect Effect
	// UI says that the device manager shows the key, under Title.
	UI     bool
	Title  string
	Status Status
	// Description says what the key does, in our own words.
	Description string
	Sources     []Source
}

// Base is the root of a key's path.
type Base uint8

const (
	// AdapterClass is HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}\<nn>.
	AdapterClass Base = iota
	// DriverService is HKLM\SYSTEM\CurrentControlSet\Services\<driver>\Parameters, where <driver> is mlx4_bus or mlx5
	// as Path's generation says.
	DriverService
	// Absolute means that Path is the whole path below HKLM.
	Absolute
)

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
	// Instances says what there is one of: "adapter", "port", "priority", "cpu", "vport", "function".
	Instances   string
	Description string
	Sources     []Source
	Counters    []Counter
}

// Counter is a counter of a set.
type Counter struct {
	Name        string // as the manuals print it
	Short       string // as in metric names: lower case, words joined by "_", unit last
	Kind        CounterKind
	Unit        string // "bytes", "packets", "bytes/s", "packets/s", "us", "%", ...
	Description string
	Status      Status
	// Of names what a Rate or Ratio is computed from: the Short of the totals, in this set.
	Of []string
	// Keeps says that the counter is not set back with its set's reset.
	Keeps bool
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
	// ID of the event, by which scripts find it.
	ID uint32
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

// Parameter is a parameter of the driver or the device that tools show and is not a registry key: mlxconfig's
// and driverparams' entries.
type Parameter struct {
	Name        string
	Generations Generation
	Scope       Scope
	Type        Type
	Default     Default
	Min, Max    uint64
	Choices     []Choice
	Status      Status
	Description string
	Sources     []Source
}
