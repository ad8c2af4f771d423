package resource

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/driver/dump/register"
)

// Part is a segment of a file.
type Part struct {
	Type   uint16
	Index1 uint32 // of an object, and of a reference
	Index2 uint32 // of a batch: the counter
	Batch  []uint64
	Refers uint16 // the segment that a reference is to
	Text   string // of a notice
	Values []register.Value
	Menu   []MenuRecord
}

// MenuRecord is a row of the menu.
type MenuRecord struct {
	Type        uint16
	Name, Index string
	// Must: a dump needs the index. Many: it takes a number of objects.
	Must, Many bool
}

// DamageError says where a file is no resource dump.
type DamageError struct {
	Offset int
	Why    string
}

func (e *DamageError) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Why) }

// menuDwords is how many dwords a record of the menu has.
const menuDwords = 1 + 3*nameDwords

// Read returns the segments of a file, from the first to the one that ends it. The error is a *DamageError.
func Read(file []byte) (parts []Part, err error) {
	for at := 0; ; {
		rest := file[at:]
		if len(rest) < 4 {
			return nil, &DamageError{at, "the file ends before the segment that ends a dump"}
		}
		head := binary.BigEndian.Uint32(rest)
		n := int(head >> 16)
		if n == 0 || 4*n > len(rest) {
			return nil, &DamageError{at, fmt.Sprintf("a segment of %d dwords; %d bytes are left", n, len(rest))}
		}
		words := make([]uint32, n-1)
		for i := range words {
			words[i] = binary.BigEndian.Uint32(rest[4*(i+1):])
		}
		p, why := part(uint16(head), words)
		if why != "" {
			return nil, &DamageError{at, why}
		}
		at += 4 * n
		if p.Type == terminate {
			if at != len(file) {
				return nil, &DamageError{at, "there is something behind the segment that ends a dump"}
			}
			return parts, nil
		}
		parts = append(parts, p)
	}
}

// part reads what a segment has after its first dword; why it cannot be read is "" if it can.
func part(kind uint16, w []uint32) (p Part, why string) {
	if kind == Monitoring {
		return batch(w)
	}
	p.Type = kind
	need := map[uint16]int{notice: 3 + textDwords, called: 4, terminate: 1, reference: 4, info: 3, Menu: 1}[kind]
	s := SegmentOf(kind)
	if s != nil {
		need = 3 + s.block.Size()
	} else if need == 0 {
		return p, fmt.Sprintf("0x%x is no segment; allowed: %s", kind, allowedSegments())
	}
	if kind == Menu && len(w) > 0 {
		need += int(w[0]) & 0xffff * menuDwords
	}
	if len(w) != need {
		return p, fmt.Sprintf("segment 0x%x has %d dwords; it must have %d", kind, len(w)+1, need+1)
	}
	switch {
	case s != nil:
		p.Index1, p.Values = w[1], s.block.Values(w[3:])
	case kind == notice:
		p.Text = wordsText(w[3:])
	case kind == reference:
		p.Refers, p.Index1 = uint16(w[0]), w[1]
	case kind == Menu:
		for w = w[1:]; len(w) > 0; w = w[menuDwords:] {
			flags := w[0] >> 16
			p.Menu = append(p.Menu, MenuRecord{Type: uint16(w[0]), Name: wordsText(w[1 : 1+nameDwords]),
				Index: wordsText(w[1+nameDwords : 1+2*nameDwords]), Must: flags&mustIndex1 != 0, Many: flags&canCount1 != 0})
		}
	}
	return p, ""
}

// Name returns what a segment is called.
func (p *Part) Name() string { return nameOf(p.Type) }

// nameOf returns the name of a type of segment.
func nameOf(kind uint16) string {
	if s := SegmentOf(kind); s != nil {
		return s.Name
	}
	return map[uint16]string{notice: "NOTICE", called: "COMMAND", reference: "REFERENCE", info: "INFO", Menu: "MENU"}[kind]
}

// Text returns segments for people: a line that names it, and one for each field.
func Text(parts []Part) []byte {
	var b bytes.Buffer
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Type == called || p.Type == info:
		case p.Type == Monitoring:
			fmt.Fprintf(&b, "segment 0x%04x index1 0x%x index2 0x%x\n", p.Type, p.Index1, p.Index2)
			for n, v := range p.Batch {
				fmt.Fprintf(&b, "\tVF %d %s: %d\n", int(p.Index1)-1+n, counterName(p.Index2), v)
			}
		case p.Type == notice:
			fmt.Fprintf(&b, "# %s\n", p.Text)
		case p.Type == reference:
			fmt.Fprintf(&b, "\trefers to segment 0x%04x (%s) index1 0x%x\n", p.Refers, nameOf(p.Refers), p.Index1)
		case p.Type == Menu:
			for _, m := range p.Menu {
				fmt.Fprintf(&b, "segment 0x%04x (%s) index1 (%s)\n", m.Type, m.Name, m.Index)
			}
		default:
			fmt.Fprintf(&b, "segment 0x%04x (%s) index1 0x%x\n", p.Type, p.Name(), p.Index1)
			for _, v := range p.Values {
				fmt.Fprintf(&b, "\t%s: %s\n", v.Name, v)
			}
		}
	}
	return b.Bytes()
}

func wordsText(w []uint32) string {
	var b []byte
	for _, x := range w {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, string(bytes.TrimRight(b, "\x00")))
}
