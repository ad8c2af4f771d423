package registry

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// Type is the type of a value, with winnt.h's numbers. Types not declared here are kept as they are.
type Type uint32

// The types.
const (
	None             Type = 0
	SZ               Type = 1
	ExpandSZ         Type = 2
	Binary           Type = 3
	DWORD            Type = 4
	DWORDBigEndian   Type = 5
	Link             Type = 6
	MultiSZ          Type = 7
	ResourceList     Type = 8
	FullResource     Type = 9
	ResourceRequired Type = 10
	QWORD            Type = 11
)

var typeNames = []string{
	"REG_NONE", "REG_SZ", "REG_EXPAND_SZ", "REG_BINARY", "REG_DWORD", "REG_DWORD_BIG_ENDIAN", "REG_LINK", "REG_MULTI_SZ",
	"REG_RESOURCE_LIST", "REG_FULL_RESOURCE_DESCRIPTOR", "REG_RESOURCE_REQUIREMENTS_LIST", "REG_QWORD",
}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("REG_TYPE_%d", uint32(t))
}

// ParseType parses the name of a type in any letter case.
func ParseType(s string) (Type, bool) {
	switch up := strings.ToUpper(s); up {
	case "REG_DWORD_LITTLE_ENDIAN":
		return DWORD, true
	case "REG_QWORD_LITTLE_ENDIAN":
		return QWORD, true
	default:
		i := slices.Index(typeNames, up)
		return Type(i), i >= 0
	}
}

// Value is a value of a key. Data is in the form in which Windows holds it: strings in UTF-16LE with a
// terminating zero, numbers in little endian. It must not be changed once it is in a registry. The name ""
// is the key's default value.
type Value struct {
	Name string
	Type Type
	Data []byte
}

// String returns a REG_SZ.
func String(name, s string) Value { return Value{name, SZ, utf16Bytes(s, 1)} }

// Strings returns a REG_MULTI_SZ.
func Strings(name string, list []string) Value {
	var b []byte
	for _, s := range list {
		b = append(b, utf16Bytes(s, 1)...)
	}
	return Value{name, MultiSZ, append(b, 0, 0)}
}

// DWord returns a REG_DWORD.
func DWord(name string, n uint32) Value {
	return Value{name, DWORD, binary.LittleEndian.AppendUint32(nil, n)}
}

// QWord returns a REG_QWORD.
func QWord(name string, n uint64) Value {
	return Value{name, QWORD, binary.LittleEndian.AppendUint64(nil, n)}
}

// Number returns the value of a REG_DWORD or REG_QWORD of the right length.
func (v Value) Number() (uint64, bool) {
	switch {
	case v.Type == DWORD && len(v.Data) == 4:
		return uint64(binary.LittleEndian.Uint32(v.Data)), true
	case v.Type == DWORDBigEndian && len(v.Data) == 4:
		return uint64(binary.BigEndian.Uint32(v.Data)), true
	case v.Type == QWORD && len(v.Data) == 8:
		return binary.LittleEndian.Uint64(v.Data), true
	}
	return 0, false
}

// Text returns the value of a REG_SZ or REG_EXPAND_SZ up to its terminating zero. It returns false if the
// data is not UTF-16.
func (v Value) Text() (string, bool) {
	if v.Type != SZ && v.Type != ExpandSZ {
		return "", false
	}
	s, ok := utf16Text(v.Data)
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return s, ok
}

// List returns the strings of a REG_MULTI_SZ. It returns false if the data is not UTF-16.
func (v Value) List() ([]string, bool) {
	if v.Type != MultiSZ {
		return nil, false
	}
	s, ok := utf16Text(v.Data)
	s = strings.TrimSuffix(s, "\x00")
	s = strings.TrimSuffix(s, "\x00")
	if s == "" {
		return nil, ok
	}
	return strings.Split(s, "\x00"), ok
}

// Equal compares names as the registry does, and everything else exactly.
func (v Value) Equal(o Value) bool {
	return fold(v.Name) == fold(o.Name) && v.Type == o.Type && slices.Equal(v.Data, o.Data)
}

// Show returns the data for people, in the form of reg.exe.
func (v Value) Show() string {
	if n, ok := v.Number(); ok {
		return fmt.Sprintf("%#x", n)
	}
	if s, ok := v.Text(); ok {
		return s
	}
	if l, ok := v.List(); ok {
		return strings.Join(l, `\0`)
	}
	return fmt.Sprintf("%X", v.Data)
}

// utf16Bytes returns s in UTF-16LE, followed by zeros.
func utf16Bytes(s string, zeros int) []byte {
	b := make([]byte, 0, 2*len(s)+2*zeros)
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	for range zeros {
		b = append(b, 0, 0)
	}
	return b
}

// utf16Text decodes UTF-16LE. It returns false if the length is odd or a surrogate is unpaired.
func utf16Text(b []byte) (string, bool) {
	ok := len(b)%2 == 0
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	s := utf16.Decode(u)
	return string(s), ok && slices.Equal(utf16.Encode(s), u)
}
