package catalogue

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is a registry value.
type Value struct {
	Type Type
	// Auto stands for the automatic value, which a key's AutoText represents.
	Auto bool
	// Number is the value of DWORD, QWORD and NumericString.
	Number uint64
	// Text is the value of String.
	Text string
	// Bytes are the value of Binary.
	Bytes []byte
	// Strings are the value of MultiString.
	Strings []string
}

// ValueError says that a value is not allowed for a key.
type ValueError struct {
	Key, Value string
	// Allowed says which values are.
	Allowed string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("%s is %s; allowed: %s", e.Key, e.Value, e.Allowed)
}

// maxText limits strings and binary values in bytes (Windows recommends keeping larger values in files).
const maxText = 2048

// String returns the name of the registry's type, as reg.exe accepts it.
func (t Type) String() string {
	switch t {
	case DWORD:
		return "REG_DWORD"
	case QWORD:
		return "REG_QWORD"
	case Binary:
		return "REG_BINARY"
	case MultiString:
		return "REG_MULTI_SZ"
	default:
		return "REG_SZ"
	}
}

// ParseNumber parses a number like the registry's tools: decimal, or hexadecimal after 0x.
func ParseNumber(s string) (uint64, bool) {
	base := 10
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		s, base = s[2:], 16
	}
	n, err := strconv.ParseUint(s, base, 64)
	return n, err == nil
}

// Parse parses the key's value from text, in the form of reg add: numbers decimal or with 0x, binary as
// hexadecimal digits, the strings of a multi-string separated by \0. It validates the value. Errors are
// *ValueError.
func (k Key) Parse(text string) (Value, error) {
	v := Value{Type: k.Type}
	switch {
	case k.AutoText != "" && text == k.AutoText:
		v.Auto = true
	case k.Numeric():
		n, ok := ParseNumber(text)
		if !ok {
			return Value{}, k.refuse(quote(text))
		}
		v.Number = n
	case k.Type == Binary:
		b, err := hex.DecodeString(text)
		if err != nil {
			return Value{}, k.refuse(quote(text))
		}
		v.Bytes = b
	case k.Type == MultiString:
		if text != "" {
			v.Strings = strings.Split(text, `\0`)
		}
	default:
		v.Text = text
	}
	return v, k.Validate(v)
}

// Accept checks a stored value and converts it to the key's own type: like NDIS, a numeric key accepts its
// number as REG_DWORD, REG_QWORD or REG_SZ. Errors are *ValueError.
func (k Key) Accept(v Value) (Value, error) {
	if k.Numeric() {
		switch v.Type {
		case String:
			return k.Parse(v.Text)
		case DWORD, QWORD, NumericString:
			if v.Type == DWORD && k.AutoText == "-1" && v.Number == 1<<32-1 {
				v = Value{Auto: true}
			}
			v.Type = k.Type
			return v, k.Validate(v)
		}
	}
	if v.Type != k.Type {
		return Value{}, k.refuse("a " + v.Type.String())
	}
	return v, k.Validate(v)
}

// Validate checks a value of the key's own type. Errors are *ValueError, which name the key and what it
// allows.
func (k Key) Validate(v Value) error {
	switch {
	case v.Type != k.Type:
		return k.refuse("a " + v.Type.String())
	case v.Auto && k.AutoText == "":
		return k.refuse("automatic")
	case v.Auto:
		return nil
	case k.Numeric():
		if !k.allows(v.Number) {
			return k.refuse(k.Format(v))
		}
	case k.Type == Binary:
		if most := k.maxLength(); len(v.Bytes) > most {
			return k.refuse(fmt.Sprintf("%d bytes long", len(v.Bytes)))
		}
	case k.Type == MultiString:
		total := 0
		for _, s := range v.Strings {
			total += len(s) + 1
			if s == "" || !plain(s) {
				return k.refuse(quote(s))
			}
		}
		if total > k.maxLength() {
			return k.refuse(fmt.Sprintf("%d bytes long", total))
		}
	default:
		if len(v.Text) > k.maxLength() {
			return k.refuse(fmt.Sprintf("%d bytes long", len(v.Text)))
		}
		if !plain(v.Text) || !k.Form.allows(v.Text) {
			return k.refuse(quote(v.Text))
		}
	}
	return nil
}

// Exceeds checks an otherwise allowed value against the key's Bound, which is most on this machine. Errors
// are *ValueError.
func (k Key) Exceeds(v Value, most uint64) error {
	if v.Auto || !k.Numeric() || v.Number <= most {
		return nil
	}
	return &ValueError{k.Name, k.Format(v), fmt.Sprintf("%s, which is %s", k.Allowed(), k.number(most))}
}

// ConflictError says that two keys of one place are both set.
type ConflictError struct {
	Key, Other string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s cannot be set while %s is: set %s to 0 first", e.Key, e.Other, e.Other)
}

// Conflict checks the value against the key that excludes it. other returns that key's number: the one in
// the same place, or its default. Errors are *ConflictError.
func (k Key) Conflict(v Value, other func(name string) uint64) error {
	if k.Excludes == "" || v.Number == 0 || other(k.Excludes) == 0 {
		return nil
	}
	return &ConflictError{k.Name, k.Excludes}
}

// allows reports whether n is a valid value of the numeric key.
func (k Key) allows(n uint64) bool {
	if len(k.Choices) > 0 {
		for _, c := range k.Choices {
			if c.Value == n {
				return true
			}
		}
		return false
	}
	least, most := k.Limits()
	switch {
	case n < least || n > most:
		return false
	case k.Step > 0 && n%k.Step != 0:
		return false
	case k.PowerOf2 && bits.OnesCount64(n) != 1:
		return false
	case k.BitsSet > 0 && n != 0 && bits.OnesCount64(n) != k.BitsSet:
		return false
	}
	return true
}

func (k Key) maxLength() int {
	if k.Max > 0 {
		return int(k.Max)
	}
	return maxText
}

// Allowed says which values the key accepts, in words.
func (k Key) Allowed() string {
	var b strings.Builder
	switch {
	case len(k.Choices) > 0:
		for i, c := range k.Choices {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(k.number(c.Value))
			if c.Name != k.number(c.Value) {
				fmt.Fprintf(&b, " (%s)", c.Name)
			}
		}
	case k.Numeric():
		least, most := k.Limits()
		fmt.Fprintf(&b, "%s to %s", k.number(least), k.number(most))
		if k.Unit != "" {
			b.WriteString(" " + k.Unit)
		}
		if k.Bound != "" {
			fmt.Fprintf(&b, ", at most the %s", k.Bound)
		}
		if k.Step > 0 {
			fmt.Fprintf(&b, ", a multiple of %d", k.Step)
		}
		if k.PowerOf2 {
			b.WriteString(", a power of two")
		}
		if k.BitsSet > 0 {
			fmt.Fprintf(&b, ", 0 or with %d bits set", k.BitsSet)
		}
	case k.Type == Binary:
		fmt.Fprintf(&b, "hexadecimal digits, up to %d bytes", k.maxLength())
	case k.Type == MultiString:
		fmt.Fprintf(&b, `printable strings separated by \0, up to %d bytes`, k.maxLength())
	case k.Form == UnicastMAC:
		b.WriteString("12 hexadecimal digits, with or without - or : between each two, of a unicast address that is not 0")
	case k.Form == DirectoryPath:
		fmt.Fprintf(&b, `the absolute path of a directory, such as \??\C:\DMN_DIR, /var/dumps or one below \SystemRoot\temp, of up to %d bytes`, k.maxLength())
	default:
		fmt.Fprintf(&b, "printable text of up to %d bytes", k.maxLength())
	}
	if k.AutoText != "" {
		fmt.Fprintf(&b, ", or %s (automatic)", k.AutoText)
	}
	return b.String()
}

// Format returns a value in the form that Parse reads.
func (k Key) Format(v Value) string {
	switch {
	case v.Auto:
		return k.AutoText
	case k.Numeric():
		return k.number(v.Number)
	case k.Type == Binary:
		return hex.EncodeToString(v.Bytes)
	case k.Type == MultiString:
		return strings.Join(v.Strings, `\0`)
	default:
		return v.Text
	}
}

func (k Key) number(n uint64) string {
	if k.Hex {
		return fmt.Sprintf("0x%x", n)
	}
	return strconv.FormatUint(n, 10)
}

// Value returns the default as a value of the key, false if it is automatic and cannot be written.
func (d Default) Value(k Key) (Value, bool) {
	switch {
	case d.Auto:
		return Value{Type: k.Type, Auto: true}, k.AutoText != ""
	case k.Numeric():
		return Value{Type: k.Type, Number: d.Number}, true
	}
	v, err := k.Parse(d.Text)
	return v, err == nil
}

func (k Key) refuse(value string) *ValueError {
	return &ValueError{Key: k.Name, Value: value, Allowed: k.Allowed()}
}

// plain reports whether s is UTF-8 without control characters.
func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// allows reports whether a text has the form.
func (f Form) allows(text string) bool {
	switch f {
	case UnicastMAC:
		return unicastMAC(text)
	case DirectoryPath:
		_, ok := ParseSystemPath(text)
		return ok
	}
	return true
}

// unicastMAC reports whether s is the MAC address of one station.
func unicastMAC(s string) bool {
	if len(s) == 17 {
		sep := s[2]
		if sep != '-' && sep != ':' {
			return false
		}
		for i := 2; i < len(s); i += 3 {
			if s[i] != sep {
				return false
			}
		}
		s = strings.ReplaceAll(s, string(sep), "")
	}
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 6 && b[0]&1 == 0 && !bytes.Equal(b, make([]byte, 6))
}

// quote quotes a refused text, shortened, for a message.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}
