package registry

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// RegFormat is a form of .reg files.
type RegFormat uint8

// The forms.
const (
	Version5 RegFormat = iota // "Windows Registry Editor Version 5.00", UTF-16LE with a byte order mark
	Regedit4                  // REGEDIT4, UTF-8
)

// WriteRegFile writes the key at p with everything below it as a .reg file, which ParseRegFile reads back to
// the same. It fails with ErrNotFound, with what w says, or, under Regedit4, where a value is not text
// although its type says so, which that form cannot carry.
func (r *Registry) WriteRegFile(w io.Writer, p Path, format RegFormat) error {
	var s strings.Builder
	header := headerUnicode
	if format == Regedit4 {
		header = headerANSI
	}
	s.WriteString(header + "\r\n\r\n")
	var bad error
	found := r.Walk(p, func(k Key) bool {
		fmt.Fprintf(&s, "[%s]\r\n", k.Path)
		for _, v := range k.Values {
			if err := writeValue(&s, v, format); err != nil {
				bad = fmt.Errorf("%s: %w", k.Path, err)
			}
		}
		s.WriteString("\r\n")
		return bad == nil
	})
	if !found {
		return ErrNotFound
	}
	if bad != nil {
		return bad
	}
	_, err := w.Write(encodeText(s.String(), format))
	return err
}

// encodeText is the text in the encoding of the form.
func encodeText(s string, format RegFormat) []byte {
	if format == Regedit4 {
		return []byte(s)
	}
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

// writeValue writes a line, or several where it is long.
func writeValue(s *strings.Builder, v Value, format RegFormat) error {
	name := "@"
	if v.Name != "" {
		name = `"` + escape(v.Name) + `"`
	}
	if text, ok := v.Text(); ok && v.Type == SZ && String("", text).Equal(Value{Type: SZ, Data: v.Data}) && !strings.ContainsAny(text, "\r\n") {
		fmt.Fprintf(s, "%s=\"%s\"\r\n", name, escape(text))
		return nil
	}
	if n, ok := v.Number(); ok && v.Type == DWORD {
		fmt.Fprintf(s, "%s=dword:%08x\r\n", name, n)
		return nil
	}
	data := v.Data
	if format == Regedit4 && (v.Type == SZ || v.Type == ExpandSZ || v.Type == MultiSZ) {
		text, ok := utf16Text(data)
		if !ok {
			return fmt.Errorf("value %s: its data is no text, which REGEDIT4 cannot carry; allowed: version 5.00", quoteName(v.Name))
		}
		data = []byte(text)
	}
	kind := "hex:"
	if v.Type != Binary {
		kind = fmt.Sprintf("hex(%x):", uint32(v.Type))
	}
	writeHex(s, name+"="+kind, data)
	return nil
}

// writeHex writes bytes behind start, in lines of 80 characters, as regedit breaks them.
func writeHex(s *strings.Builder, start string, data []byte) {
	const widest = 79
	s.WriteString(start)
	at := len(start)
	for i, b := range data {
		if i > 0 && at+3 > widest {
			s.WriteString("\\\r\n  ")
			at = 2
		}
		fmt.Fprintf(s, "%02x", b)
		if i < len(data)-1 {
			s.WriteByte(',')
		}
		at += 3
	}
	s.WriteString("\r\n")
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
