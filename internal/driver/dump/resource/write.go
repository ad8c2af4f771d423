package resource

import (
	"encoding/binary"
	"fmt"

	"github.com/softvpi/softvpi/internal/driver/dump/register"
)

const (
	dumpVersion = 1
	// textDwords is how many dwords a notice's text has, and nameDwords those of a name in the menu.
	textDwords, nameDwords = 8, 4
	// The bits of a menu's record: what may, and what must, be given.
	canIndex1, mustIndex1, canCount1, all1, active1 = 1 << 0, 1 << 1, 1 << 4, 1 << 6, 1 << 7
	// The syndromes of notices, which are chosen here.
	missingObjects, leftOutObjects = 1, 2
)

// Dump returns what is asked for of an adapter. The error is a *RequestError.
func Dump(p *register.Port, q Request) ([]byte, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	var w writer
	w.segment(info, dumpVersion, uint32(p.Inspection.Info.DeviceID), 0)
	index := uint32(0)
	if q.Index1 != nil {
		index = *q.Index1
	}
	w.segment(called, uint32(q.Segment)<<16, index, 0, uint32(q.Count1)<<16)
	if q.Segment == Menu {
		w.menu()
	} else if err := w.objects(newAdapter(p), &q); err != nil {
		return nil, err
	}
	w.segment(terminate, 0)
	return w, nil
}

// writer appends segments.
type writer []byte

func (w *writer) segment(kind uint16, words ...uint32) {
	*w = binary.BigEndian.AppendUint32(*w, uint32(len(words)+1)<<16|uint32(kind))
	for _, x := range words {
		*w = binary.BigEndian.AppendUint32(*w, x)
	}
}

// menu appends the list of segments.
func (w *writer) menu() {
	words := []uint32{uint32(len(Segments))}
	for _, s := range Segments {
		words = append(words, (canIndex1|mustIndex1|canCount1|all1|active1)<<16|uint32(s.Type))
		words = append(words, textWords(s.Name, nameDwords)...)
		words = append(words, textWords(s.Index, nameDwords)...)
		words = append(words, textWords("N/A", nameDwords)...)
	}
	w.segment(Menu, words...)
}

// objects appends those that are asked for, and what they refer to down to the depth, each once.
func (w *writer) objects(a *adapter, q *Request) error {
	level, missing, err := q.pick(a)
	if err != nil {
		return err
	}
	if missing > 0 {
		w.notice(missingObjects, fmt.Sprintf("%d objects do not exist", missing))
	}
	if a.leftOut > 0 {
		w.notice(leftOutObjects, fmt.Sprintf("%d objects left out", a.leftOut))
	}
	seen := map[*uint32]bool{}
	for depth := uint32(0); len(level) > 0; depth++ {
		var next []object
		for i := range level {
			o := &level[i]
			if seen[&o.record[0]] {
				continue
			}
			seen[&o.record[0]] = true
			w.segment(o.segment.Type, append([]uint32{0, o.index, 0}, o.record...)...)
			for _, x := range a.refersTo(o) {
				w.segment(reference, uint32(x.segment.Type), x.index, 0, 1<<16)
				next = append(next, x)
			}
		}
		if depth >= q.Depth {
			return nil
		}
		level = next
	}
	return nil
}

func (w *writer) notice(syndrome uint32, text string) {
	w.segment(notice, append([]uint32{syndrome, 0, 0}, textWords(text, textDwords)...)...)
}

// textWords returns the first bytes of a text, with the first one in the upper bits.
func textWords(s string, dwords int) (words []uint32) {
	b := make([]byte, 4*dwords)
	copy(b, s)
	for ; len(b) > 0; b = b[4:] {
		words = append(words, binary.BigEndian.Uint32(b))
	}
	return words
}
