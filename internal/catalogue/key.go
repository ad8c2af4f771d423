package catalogue

// Group names the table of the manuals that contains an entry.
type Group string

// Choice is one of the values of an enumerated key.
type Choice struct {
	Value   uint64
	Name    string // as pages show it
	Meaning string
}

// Default is the value of a key that is not set.
type Default struct {
	// Auto means that the value is derived from something else, described by Text.
	Auto bool
	// Number is the default of numeric keys.
	Number uint64
	// Text is the default of other keys; for automatic ones it says what the value is derived from.
	Text string
}

// Bound limits the value of a key further on a given machine: package registry applies it whenever a value
// is set or read.
type Bound string

const (
	// LineRate is the port's speed in Mbit/s. A larger value is reduced to it, with a warning.
	LineRate Bound = "line rate"
	// Processors is the number of the machine's processors.
	Processors Bound = "number of processors"
	// ReceiveRings is the number of the adapter's receive rings.
	ReceiveRings Bound = "number of receive rings"
	// VirtualFunctions is the number of virtual functions that the device's configuration allows. A larger
	// value is reduced to it, with a warning.
	VirtualFunctions Bound = "NUM_OF_VFS"
)

// Soft reports whether a value above the bound is allowed, and reduced to the bound.
func (b Bound) Soft() bool { return b == LineRate || b == VirtualFunctions }

// Form is the required form of a text.
type Form uint8

const (
	// anyText is any printable text.
	anyText Form = iota
	// UnicastMAC is the MAC address of one station: 12 hexadecimal digits, with or without a dash or colon
	// between each two.
	UnicastMAC
	// DirectoryPath is what ParseSystemPath reads.
	DirectoryPath
)

// Key is a registry key in the manuals' sense: a value, with its name and the key that holds it.
type Key struct {
	// Name is the value's name in the registry ("*JumboPacket", "roce_mode").
	Name string
	// Aliases are other accepted spellings that the manuals use. An alias of several keys sets all of them
	// (DcqcnEnablePrio0).
	Aliases []string
	// Base is the root of Path.
	Base Base
	// Overrides says that a value in this place takes precedence over more specific places, contrary to
	// the rule.
	Overrides bool
	// Path is the rest of the path below Base, "" if there is none.
	Path  string
	Group Group
	// Generations that have the key. If a key's type, limits or choices differ between generations or
	// between Ethernet and IPoIB, it is declared once for each.
	Generations Generation
	Scope       Scope
	Type        Type
	// Defaults by generation; one entry with Both if they agree.
	Defaults map[Generation]Default
	// IPoIB is the default on IPoIB ports if it differs.
	IPoIB *Default
	// Min and Max limit numeric keys; both are 0 if Choices do, or if the type's own range applies. For
	// String keys Max limits the length in bytes.
	Min, Max uint64
	// Bound limits the value further on a given machine, "" for none.
	Bound Bound
	// Step is what a value must be a multiple of, 0 for any.
	Step uint64
	// PowerOf2 requires a power of two.
	PowerOf2 bool
	// BitsSet requires exactly that many bits set, or none at all; 0 for any.
	BitsSet int
	// Choices are the values of an enumerated key.
	Choices []Choice
	// Form is the required form of String keys.
	Form Form
	// AutoText is the text for the automatic value if it can be written ("-1"), "" if only an absent key
	// is automatic.
	AutoText string
	// Excludes names the key in the same place that must be 0 while this one is not, "" for none.
	Excludes string
	// Unit of the value: "packets", "us", "bytes"...; "" for none.
	Unit string
	// Hex says that the value is usually written in hexadecimal: masks, EtherTypes.
	Hex    bool
	Effect Effect
	// UI says that the device manager shows the key, as Title.
	UI     bool
	Title  string
	Status Status
	// Description says what the key does, in our own words.
	Description string
	// Chosen says which of these facts are not in the manuals but SoftVPI's choice, "" for none.
	Chosen  string
	Sources []Source
}

// Target is an adapter for which keys are looked up.
type Target struct {
	Generation Generation
	// IPoIB says that the port is InfiniBand; otherwise it is Ethernet.
	IPoIB bool
	// VF says that it is a virtual function.
	VF bool
}

// applies reports whether an adapter such as t has the key. Keys of the driver, the bus and the machine
// apply to all adapters of their generations except virtual functions.
func (k Key) applies(t Target) bool {
	if k.Generations&t.Generation == 0 || t.VF && k.Scope&ofVF == 0 {
		return false
	}
	kinds := k.Scope & (ofEthernet | ofIPoIB)
	return kinds == 0 || t.IPoIB && kinds&ofIPoIB != 0 || !t.IPoIB && kinds&ofEthernet != 0
}

// Default returns the key's value on an adapter of generation g if it is not set. For a generation that
// does not have the key it returns the zero Default.
func (k Key) Default(g Generation, ipoib bool) Default {
	if k.Generations&g == 0 {
		return Default{}
	}
	if ipoib && k.IPoIB != nil {
		return *k.IPoIB
	}
	if d, ok := k.Defaults[g]; ok {
		return d
	}
	return k.Defaults[Both]
}

// Numeric reports whether the key's value is a number.
func (k Key) Numeric() bool {
	return k.Type == DWORD || k.Type == QWORD || k.Type == NumericString
}

// Limits returns the minimum and maximum of a numeric key, those of its type if it has none. Choices,
// steps and other restrictions apply within them.
func (k Key) Limits() (least, most uint64) {
	switch {
	case len(k.Choices) > 0:
		least, most = k.Choices[0].Value, k.Choices[0].Value
		for _, c := range k.Choices {
			least, most = min(least, c.Value), max(most, c.Value)
		}
		return least, most
	case k.Min != 0 || k.Max != 0:
		return k.Min, k.Max
	case k.Type == QWORD:
		return 0, 1<<64 - 1
	default:
		return 0, 1<<32 - 1
	}
}
