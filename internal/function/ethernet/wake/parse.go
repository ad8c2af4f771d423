package wake

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// MaxPatterns is how many patterns a function compares frames with at most.
const MaxPatterns = 32

// Form is how patterns are written: "12:0806+38:c0000201" is a frame with EtherType 0x0806 at offset 12 and an address at 38.
const Form = "OFFSET:HEX parts joined by +, within the first 128 bytes of a frame: 12:0806+38:c0000201"

// TextError says that a text is not a pattern.
type TextError struct{ Text, Part string }

func (e *TextError) Error() string {
	return fmt.Sprintf("pattern %q: %q, want %s", e.Text, e.Part, Form)
}

// ParsePattern reads a pattern in its Form. The error is a *TextError.
func ParsePattern(text string) (Pattern, error) {
	var p Pattern
	for part := range strings.SplitSeq(text, "+") {
		if !p.add(part) {
			return Pattern{}, &TextError{text, part}
		}
	}
	return p, nil
}

// add adds a part of a pattern's text, none of whose bytes another one has.
func (p *Pattern) add(part string) bool {
	offset, digits, _ := strings.Cut(part, ":")
	at, err := strconv.ParseUint(offset, 10, 8)
	b, bad := hex.DecodeString(digits)
	if err != nil || bad != nil || len(b) == 0 || int(at)+len(b) > MaxPattern {
		return false
	}
	for n := int(at) + len(b); len(p.Bytes) < n; {
		p.Bytes = append(p.Bytes, 0)
	}
	for n := (len(p.Bytes) + 7) / 8; len(p.Mask) < n; {
		p.Mask = append(p.Mask, 0)
	}
	for i, x := range b {
		i += int(at)
		if p.counts(i) {
			return false
		}
		p.Bytes[i] = x
		p.Mask[i/8] |= 1 << (i % 8)
	}
	return true
}

// counts reports whether a byte is compared.
func (p *Pattern) counts(i int) bool { return p.Mask[i/8]>>(i%8)&1 != 0 }

// String returns the pattern in its Form.
func (p *Pattern) String() string {
	var out strings.Builder
	for i, b := range p.Bytes {
		if !p.counts(i) {
			continue
		}
		if i == 0 || !p.counts(i-1) {
			if out.Len() > 0 {
				out.WriteByte('+')
			}
			fmt.Fprintf(&out, "%d:", i)
		}
		fmt.Fprintf(&out, "%02x", b)
	}
	return out.String()
}
