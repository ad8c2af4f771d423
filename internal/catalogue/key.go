package catalogue

// Group names the table of the manuals that an entry stands in.
type Group string

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

// Bound is what limits the value of a key further on a given machine: package registry applies it wherever a value
// is set or read.
type Bound string

const (
	// LineRate is the port's speed in Mbit/s. A larger value is taken as the line rate, with a warning.
	LineRate Bound = "line rate"
	// Processors is the number of the machine's processors.
	Processors Bound = "number of processors"
	// ReceiveRings is the number of the adapter's receive rings.
	ReceiveRings Bound = "number of receive rings"
	// VirtualFunctions is the number of virtual functions that the device's configuration allows. A larger value is
	// taken as that, with a warning.
	VirtualFunctions Bound = "NUM_OF_VFS"
)

// Soft says that a value beyond the bound is allowed, and taken as the bound.
func (b Bound) Soft() bool { return b == LineRate || b == VirtualFunctions }

// Form is what a text has to look like.
type Form uint8

const (
	// anyText is any printable text.
	anyText Form = iota
	// UnicastMAC is a MAC address of one station: 12 hexadecimal digits, with or without a dash or colon between each
	// two.
	UnicastMAC
)

// Key is a registry key: what the registry calls a value, with its name and the key that holds it.
type Key struct {
	// Name is the value's name as it stands in the registry ("*JumboPacket", "roce_mode").
	Name string
	// Aliases are other spellings that the manuals use and that are accepted. One alias of several keys
	// sets all of them (DcqcnEnablePrio0).
	Aliases []string
	// Base is the root that Path continues.
	Base Base
	// Overrides says that a value here goes before those of more specific places, which else go first.
	Overrides bool
	// Path is the rest of the path below Base, "" where there is none.
	Path  string
	Group Group
	// Generations that have the key. Where a key's type, limits or choices differ between generations or
	// between Ethernet and IPoIB, it is declared once for each.
	Generations Generation
	Scope       Scope
	Type        Type
	// Defaults by generation; one entry with Both where they agree.
	Defaults map[Generation]Default
	// IPoIB is the default on IPoIB ports where it differs.
	IPoIB *Default
	// Min and Max bound numeric keys; both 0 where Choices do, or where the type's own range is meant. Of
	// String keys Max bounds the length in bytes.
	Min, Max uint64
	// Bound limits the value further on a given machine, "" for none.
	Bound Bound
	// Step is the multiple that a value must be of, 0 for any.
	Step uint64
	// PowerOf2 asks for a power of two.
	PowerOf2 bool
	// BitsSet asks for exactly so many bits set, or none at all; 0 for any.
	BitsSet int
	// Choices are the values of an enumerated key.
	Choices []Choice
	// Form is what the text of String keys has to look like.
	Form Form
	// AutoText stands for the automatic value where it may be written down ("-1"), "" where only an absent
	// key is automatic.
	AutoText string
	// Excludes names the key of the same place that has to be 0 while this one is not, "" for none.
	Excludes string
	// Unit of the value: "packets", "us", "bytes"...; "" for none.
	Unit string
	// Hex says that the value is usually written in hexadecimal: masks, EtherTypes.
	Hex    bool
	Effect Effect
	// UI says that the device manager shows the key, under Title.
	UI     bool
	Title  string
	Status Status
	// Description says what the key does, in our own words.
	Description string
	// Chosen says which of these facts the manuals do not print and SoftVPI chose, "" for none.
	Chosen  string
	Sources []Source
}

// Target is an adapter that keys are looked up for.
type Target struct {
	Generation Generation
	// IPoIB says that the port is InfiniBand, otherwise it is Ethernet.
	IPoIB bool
	// VF says that it is a virtual function.
	VF bool
}

// applies says whether an adapter such as t has the key. Keys of the driver, the bus and the machine apply to every
// adapter of their generations but virtual functions.
func (k Key) applies(t Target) bool {
	if k.Generations&t.Generation == 0 || t.VF && k.Scope&ofVF == 0 {
		return false
	}
	kinds := k.Scope & (ofEthernet | ofIPoIB)
	return kinds == 0 || t.IPoIB && kinds&ofIPoIB != 0 || !t.IPoIB && kinds&ofEthernet != 0
}

// Default is the key's value on an adapter of generation g where it is not set. The zero Default answers a
// generation that does not have the key.
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

// Numeric says whether the key's value is a number.
func (k Key) Numeric() bool {
	return k.Type == DWORD || k.Type == QWORD || k.Type == NumericString
}

// Limits are the least and the largest number of a numeric key, its type's own where it has none. Choices,
// steps and what else restricts it are inside them.
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
