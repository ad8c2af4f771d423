package bridge

import (
	"math/bits"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// key is a VLAN ID and a MAC in one word; 0 is none.
type key uint64

func keyOf(mac eth.MAC, vlan uint16) key {
	v := key(vlan)
	for _, b := range mac {
		v = v<<8 | key(b)
	}
	return v
}

func (k key) mac() (m eth.MAC) {
	for i := range m {
		m[i] = byte(k >> (40 - 8*i))
	}
	return m
}

func (k key) vlan() uint16 { return uint16(k >> 48) }

// entry says at which port a source was heard last, and when.
type entry struct {
	key  key
	seen clock.Time
	port uint8
}

// table is the filtering database (IEEE 802.1Q, 8.8): open addressing with linear probing, at most half full. Its size changes
// when ports come, and never by frames.
type table struct {
	slots  []entry
	ageing time.Duration
	oldest clock.Time // no entry was seen before
}

// resize makes room for a number of entries.
func (t *table) resize(entries int) {
	old := t.slots
	t.slots = make([]entry, 1<<bits.Len(uint(2*entries)))
	for i := range old {
		if old[i].key != 0 {
			*t.place(old[i].key) = old[i]
		}
	}
}

func (t *table) home(k key) int {
	return int(uint64(k) * 0x9e3779b97f4a7c15 >> (64 - bits.Len(uint(len(t.slots)-1))))
}

// place returns the slot of a key, or the empty one in which it would be.
func (t *table) place(k key) *entry {
	for i := t.home(k); ; i = (i + 1) & (len(t.slots) - 1) {
		if e := &t.slots[i]; e.key == k || e.key == 0 {
			return e
		}
	}
}

// find returns the entry of a key; nil: it is not known, or was not heard of for too long.
func (t *table) find(now clock.Time, k key) *entry {
	if e := t.place(k); e.key == k && !t.expired(now, e) {
		return e
	}
	return nil
}

func (t *table) expired(now clock.Time, e *entry) bool { return now.Sub(e.seen) >= t.ageing }

// remove empties the slot i. Those behind it that it has displaced move up.
func (t *table) remove(i int) {
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; t.slots[j].key != 0; j = (j + 1) & mask {
		if home := t.home(t.slots[j].key); (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = entry{}
}

// sweep removes the entries for which gone is true, and calls left for each.
func (t *table) sweep(gone func(*entry) bool, left func(*entry)) {
	t.oldest = clock.Never
	for i := 0; i < len(t.slots); {
		e := &t.slots[i]
		switch {
		case e.key == 0:
			i++
		case gone(e):
			left(e)
			t.remove(i) // what was displaced may be in its place now; what wraps around was looked at
		default:
			t.oldest = clock.Min(t.oldest, e.seen)
			i++
		}
	}
}
