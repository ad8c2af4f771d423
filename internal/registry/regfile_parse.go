package registry

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The first lines of .reg files.
const (
	headerUnicode = "Windows Registry Editor Version 5.00"
	headerANSI    = "REGEDIT4"
)

// MaxRegFile is the maximum size of a .reg file in bytes.
const MaxRegFile = 64 << 20

// A regFileError says why a .reg file cannot be read.
type regFileError struct {
	Line   int
	Reason string
}

func (e *regFileError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Is makes it ErrInvalid.
func (e *regFileError) Is(target error) bool { return target == ErrInvalid }

// ParseRegFile parses a .reg file and returns its changes in order. It accepts "Windows Registry Editor
// Version 5.00" and REGEDIT4, in UTF-16 with a byte order mark, UTF-8, or Windows-1252. Deletions are
// lenient, as in regedit. Errors are *regFileError.
func ParseRegFile(b []byte) ([]Change, error) {
	if len(b) > MaxRegFile {
		return nil, &regFileError{0, fmt.Sprintf("%d bytes long; allowed: %d", len(b), MaxRegFile)}
	}
	text, err := decodeText(b)
	if err != nil {
		return nil, err
	}
	p := &regParser{text: text, line: 1}
	header := strings.TrimSpace(p.nextLine())
	switch header {
	case headerUnicode:
	case headerANSI:
		p.ansi = true
	default:
		return nil, &regFileError{1, fmt.Sprintf("not a .reg file; allowed as the first line: %s, or %s", headerUnicode, headerANSI)}
	}
	for !p.end() {
		start := p.line
		if err := p.item(); err != nil {
			return nil, &regFileError{start, err.Error()}
		}
	}
	return p.changes, nil
}

// decodeText returns the text of a .reg file.
func decodeText(b []byte) (string, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	case bytes.HasPrefix(b, []byte{0xef, 0xbb, 0xbf}):
		b = b[3:]
		fallthrough
	default:
		return ansiText(b), nil
	}
	if len(b)%2 != 0 {
		return "", &regFileError{1, "UTF-16 with an odd number of bytes"}
	}
	u := make([]uint16, len(b)/2-1)
	for i := range u {
		u[i] = order.Uint16(b[2+2*i:])
	}
	return string(utf16.Decode(u)), nil
}

// ansiText decodes UTF-8, or Windows-1252 if it is not valid UTF-8.
func ansiText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for _, c := range b {
		r := rune(c)
		if c >= 0x80 && c < 0xa0 {
			r = windows1252[c-0x80]
		}
		s.WriteRune(r)
	}
	return s.String()
}

// windows1252 holds the characters 0x80 to 0x9f of that code page (unused ones map to themselves).
var windows1252 = [32]rune{
	0x20ac, 0x81, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8d, 0x017d, 0x8f,
	0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d, 0x017e, 0x0178,
}

// regParser reads the text of a .reg file.
type regParser struct {
	text    string
	at      int
	line    int  // of at
	ansi    bool // REGEDIT4: strings in hexadecimal are in the file's code page
	key     *Path
	gone    bool // the key was deleted
	changes []Change
}

func (p *regParser) end() bool { return p.at >= len(p.text) }

// nextLine returns the rest of the line and moves past its end.
func (p *regParser) nextLine() string {
	rest := p.text[p.at:]
	n := strings.IndexAny(rest, "\r\n")
	if n < 0 {
		p.at = len(p.text)
		return rest
	}
	p.at += n
	p.newline()
	return rest[:n]
}

// newline skips a line break.
func (p *regParser) newline() {
	if strings.HasPrefix(p.text[p.at:], "\r\n") {
		p.at++
	}
	p.at++
	p.line++
}

// spaces skips blanks in the line.
func (p *regParser) spaces() {
	for !p.end() && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
}

// item reads an empty line, a comment, a key or a value.
func (p *regParser) item() error {
	p.spaces()
	if p.end() {
		return nil
	}
	start := p.line
	switch p.text[p.at] {
	case '\r', '\n', ';':
		p.nextLine()
		return nil
	case '[':
		return p.section(p.nextLine(), start)
	case '"', '@':
		return p.value(start)
	}
	return fmt.Errorf(`%q; allowed: [key], [-key], "name"=value, @=value, ; comment`, shorten(p.nextLine()))
}

// section reads [key] or [-key].
func (p *regParser) section(line string, start int) error {
	end := strings.LastIndexByte(line, ']')
	if end < 0 {
		return fmt.Errorf("%q: a key without a closing ]", shorten(line))
	}
	if rest := strings.TrimSpace(line[end+1:]); rest != "" && rest[0] != ';' {
		return fmt.Errorf("%q after a key", shorten(rest))
	}
	name, gone := strings.CutPrefix(line[1:end], "-")
	key, err := ParsePath(name)
	if err != nil {
		return err
	}
	p.key, p.gone = &key, gone
	c := Change{Kind: CreateKey, Key: key, Line: start}
	if gone {
		c.Kind, c.Lenient = DeleteKey, true
	}
	p.changes = append(p.changes, c)
	return nil
}

// value reads "name"=... or @=...
func (p *regParser) value(start int) error {
	name := ""
	if p.text[p.at] == '@' {
		p.at++
	} else {
		var err error
		if name, err = p.quoted(); err != nil {
			return err
		}
		if name == "" {
			return fmt.Errorf(`"" is not a name; the default value is written @=`)
		}
	}
	p.spaces()
	if p.end() || p.text[p.at] != '=' {
		return fmt.Errorf("no = after the name %s", quoteName(name))
	}
	p.at++
	p.spaces()
	switch {
	case p.key == nil:
		return fmt.Errorf("a value before the first [key]")
	case p.gone:
		return fmt.Errorf("a value of a key that the file deletes")
	}
	c := Change{Kind: SetValue, Key: *p.key, Value: Value{Name: name}, Line: start}
	if err := p.data(&c); err != nil {
		return fmt.Errorf("value %s: %w", quoteName(name), err)
	}
	p.changes = append(p.changes, c)
	return nil
}

// data reads what follows the =.
func (p *regParser) data(c *Change) (err error) {
	rest := p.text[p.at:]
	if strings.HasPrefix(rest, `"`) {
		s, err := p.quoted()
		if err != nil {
			return err
		}
		c.Value = String(c.Value.Name, s)
		return p.lineEnd()
	}
	line, err := p.continued()
	if err != nil {
		return err
	}
	kind, digits, _ := strings.Cut(line, ":")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch {
	case line == "-":
		c.Kind, c.Lenient = DeleteValue, true
		return nil
	case kind == "dword":
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 32)
		if err != nil {
			return fmt.Errorf("dword:%s; allowed: up to eight hexadecimal digits", shorten(digits))
		}
		c.Value = DWord(c.Value.Name, uint32(n))
		return nil
	case kind == "hex":
		c.Value.Type = Binary
	case strings.HasPrefix(kind, "hex(") && strings.HasSuffix(kind, ")"):
		n, err := strconv.ParseUint(kind[4:len(kind)-1], 16, 32)
		if err != nil {
			return fmt.Errorf("%s; allowed: hex(type), the type in hexadecimal", shorten(kind))
		}
		c.Value.Type = Type(n)
	default:
		return fmt.Errorf(`%q; allowed: "text", dword:, hex:, hex(type):, -`, shorten(line))
	}
	if c.Value.Data, err = hexBytes(digits); err != nil {
		return err
	}
	if p.ansi && (c.Value.Type == SZ || c.Value.Type == ExpandSZ || c.Value.Type == MultiSZ) {
		c.Value.Data = utf16Bytes(ansiText(c.Value.Data), 0)
	}
	return nil
}

// quoted reads a quoted string, which may contain line breaks.
func (p *regParser) quoted() (string, error) {
	var s strings.Builder
	for p.at++; !p.end(); {
		switch c := p.text[p.at]; c {
		case '"':
			p.at++
			return s.String(), nil
		case '\\':
			if next := p.text[p.at+1:]; next == "" || next[0] != '\\' && next[0] != '"' {
				return "", fmt.Errorf(`a \ in a text; allowed: \\ and \"`)
			}
			s.WriteByte(p.text[p.at+1])
			p.at += 2
		case '\r', '\n':
			from := p.at
			p.newline()
			s.WriteString(p.text[from:p.at])
		case 0:
			return "", fmt.Errorf("a zero character in a text")
		default:
			s.WriteByte(c)
			p.at++
		}
	}
	return "", fmt.Errorf(`a text without its closing "`)
}

// lineEnd moves to the next line, skipping blanks and a comment.
func (p *regParser) lineEnd() error {
	if rest := strings.TrimSpace(p.nextLine()); rest != "" && rest[0] != ';' {
		return fmt.Errorf("%q after the text", shorten(rest))
	}
	return nil
}

// continued returns the line without its comment, joined with the following lines as long as it ends in a
// \.
func (p *regParser) continued() (string, error) {
	var s strings.Builder
	for {
		line, _, _ := strings.Cut(p.nextLine(), ";")
		line = strings.TrimSpace(line)
		part, more := strings.CutSuffix(line, `\`)
		s.WriteString(part)
		if !more {
			return s.String(), nil
		}
		if p.end() {
			return "", fmt.Errorf(`the file ends where a \ continues the line`)
		}
	}
}

// hexBytes parses hexadecimal bytes separated by commas.
func hexBytes(s string) ([]byte, error) {
	s = strings.TrimSuffix(strings.TrimSpace(s), ",")
	b := []byte{}
	if s == "" {
		return b, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(part), 16, 8)
		if err != nil {
			return nil, fmt.Errorf("%q is not a byte; allowed: two hexadecimal digits", shorten(part))
		}
		b = append(b, byte(n))
	}
	return b, nil
}

// shorten limits text in messages to a line.
func shorten(s string) string {
	const most = 40
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
