package register

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Form is how the dwords of a field are read.
type Form uint8

// The forms. Numbers of two dwords have the upper one first, and text and addresses their first bytes in the upper bits.
const (
	Decimal Form = iota
	Hex
	Text
	Address // 16 bytes: an IP address, IPv4 as ::ffff:a.b.c.d, or a GID
	Choice  // a number with names
)

var formNames = [...]string{"decimal", "hexadecimal", "text", "address", "choice"}

func (f Form) String() string { return formNames[f] }

// Field is some dwords of a record.
type Field struct {
	Name   string
	Dwords int
	Form   Form
	Names  []string // of a Choice, by value
}

// Value is what a record has in a field.
type Value struct {
	*Field
	Words []uint32
}

// Number returns the value of a number.
func (v Value) Number() (n uint64) {
	for _, w := range v.Words {
		n = n<<32 | uint64(w)
	}
	return n
}

// String returns the value for people.
func (v Value) String() string {
	switch v.Form {
	case Hex:
		return "0x" + strconv.FormatUint(v.Number(), 16)
	case Text:
		return strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return '?'
			}
			return r
		}, string(bytes.TrimRight(v.bytes(), "\x00")))
	case Address:
		return netip.AddrFrom16([16]byte(v.bytes())).Unmap().String()
	case Choice:
		if n := v.Number(); n < uint64(len(v.Names)) {
			return v.Names[n]
		}
	}
	return strconv.FormatUint(v.Number(), 10)
}

func (v Value) bytes() (b []byte) {
	for _, w := range v.Words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// column is a field of the records that are made of a T.
type column[T any] struct {
	Field
	put func(*T, []uint32)
}

func number[T any](form Form, name string, get func(*T) uint64) column[T] {
	return column[T]{Field{Name: name, Dwords: 1, Form: form}, func(x *T, w []uint32) { w[0] = uint32(min(get(x), 1<<32-1)) }}
}

func dec[T any](name string, get func(*T) uint64) column[T] { return number(Decimal, name, get) }
func hex[T any](name string, get func(*T) uint64) column[T] { return number(Hex, name, get) }

func choice[T any](name string, names []string, get func(*T) uint64) column[T] {
	c := number(Choice, name, get)
	c.Names = names
	return c
}

// wide is a number of two dwords.
func wide[T any](form Form, name string, get func(*T) uint64) column[T] {
	return column[T]{Field{Name: name, Dwords: 2, Form: form}, func(x *T, w []uint32) {
		n := get(x)
		w[0], w[1] = uint32(n>>32), uint32(n)
	}}
}

func text[T any](name string, dwords int, get func(*T) string) column[T] {
	return column[T]{Field{Name: name, Dwords: dwords, Form: Text}, func(x *T, w []uint32) { putBytes(w, []byte(get(x))) }}
}

func address[T any](name string, get func(*T) [16]byte) column[T] {
	return column[T]{Field{Name: name, Dwords: 4, Form: Address}, func(x *T, w []uint32) {
		b := get(x)
		putBytes(w, b[:])
	}}
}

// putBytes writes as many bytes as there is room for.
func putBytes(w []uint32, b []byte) {
	var whole [4]byte
	for i := range w {
		clear(whole[:])
		b = b[copy(whole[:], b):]
		w[i] = binary.BigEndian.Uint32(whole[:])
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// describe returns a field in one line of the layout.
func (f *Field) describe(offset int) string {
	s := fmt.Sprintf("0x%02x %d %s %s", offset*4, f.Dwords, f.Form, f.Name)
	if len(f.Names) > 0 {
		s += ": " + strings.Join(f.Names, ", ")
	}
	return s
}
