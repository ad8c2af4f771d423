package registry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
)

// RegFormat is a format of .reg files.
type RegFormat uint8

// The formats.
const (
	Version5 RegFormat = iota // "Windows Registry Editor Version 5.00", UTF-16LE with a byte order mark
	Regedit4                  // REGEDIT4, Windows-1252; UTF-8 if that lacks a character
)

// WriteRegFile writes the key at p with everything below it as a .reg file, from which ParseRegFile
// restores the same. It fails with ErrNotFound, with an error of w, or, for Regedit4, if a value is not
// text although its type says so, which that format cannot represent.
func (r *Registry) WriteRegFile(w io.Writer, p Path, format RegFormat) error {
	f := regWriter{encode: encodeUnicode, header: headerUnicode}
	if format == Regedit4 {
		f = regWriter{encode: encodeANSI, header: headerANSI, ansi: true}
	}
	b, err := f.file(r, p)
	if errors.Is(err, errNoANSI) {
		f.encode = encodeUTF8
		b, err = f.file(r, p)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// regWriter writes .reg files of one format.
type regWriter struct {
	encode func(string) ([]byte, error)
	header string
	ansi   bool // strings in hexadecimal are in the encoding of the file
}

func (f *regWriter) file(r *Registry, p Path) ([]byte, error) {
	var s strings.Builder
	s.WriteString(f.header + "\r\n\r\n")
	var bad error
	found := r.Walk(p, func(k Key) bool {
		fmt.Fprintf(&s, "[%s]\r\n", k.Path)
		for _, v := range k.Values {
			if err := f.value(&s, v); err != nil {
				bad = fmt.Errorf("%s: %w", k.Path, err)
			}
		}
		s.WriteString("\r\n")
		return bad == nil
	})
	if !found {
		return nil, ErrNotFound
	}
	if bad != nil {
		return nil, bad
	}
	return f.encode(s.String())
}

func encodeUnicode(s string) ([]byte, error) {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b, nil
}

func encodeUTF8(s string) ([]byte, error) { return []byte(s), nil }

// errNoANSI says that a text cannot be represented in Windows-1252, or would be read as another one.
var errNoANSI = errors.New("not in Windows-1252")

// encodeANSI encodes the text in Windows-1252, in which regedit reads REGEDIT4.
func encodeANSI(s string) ([]byte, error) {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		i := slices.Index(windows1252[:], r)
		switch {
		case i >= 0:
			b = append(b, byte(0x80+i))
		case r < 0x80 || r >= 0xa0 && r <= 0xff:
			b = append(b, byte(r))
		default:
			return nil, errNoANSI
		}
	}
	if ansiText(b) != s { // it looks like UTF-8
		return nil, errNoANSI
	}
	return b, nil
}

// value writes a line, or several if it is long.
func (f *regWriter) value(s *strings.Builder, v Value) error {
	name := "@"
	if v.Name != "" {
		name = `"` + escape(v.Name) + `"`
	}
	if text, ok := v.Text(); ok && v.Type == SZ && String("", text).Equal(Value{Type: SZ, Data: v.Data}) &&
		!strings.ContainsAny(text, "\r\n") {
		fmt.Fprintf(s, "%s=\"%s\"\r\n", name, escape(text))
		return nil
	}
	if n, ok := v.Number(); ok && v.Type == DWORD {
		fmt.Fprintf(s, "%s=dword:%08x\r\n", name, n)
		return nil
	}
	data := v.Data
	if f.ansi && (v.Type == SZ || v.Type == ExpandSZ || v.Type == MultiSZ) {
		text, ok := utf16Text(data)
		if !ok {
			return fmt.Errorf("value %s: its data is not text, and REGEDIT4 cannot carry it; allowed: version 5.00", quoteName(v.Name))
		}
		var err error
		if data, err = f.encode(text); err != nil {
			return err
		}
	}
	kind := "hex:"
	if v.Type != Binary {
		kind = fmt.Sprintf("hex(%x):", uint32(v.Type))
	}
	writeHex(s, name+"="+kind, data)
	return nil
}

// writeHex writes bytes after start, broken into lines of 80 characters like regedit's.
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
