package qos

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// None is written for an empty set.
const None = "none"

// ParsePriorities reads priorities: "3,5", or "none".
func ParsePriorities(text string) (set uint8, err error) {
	if text == None {
		return 0, nil
	}
	for w := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(w, 10, 8)
		if err != nil || n >= Priorities {
			return 0, bad("priority", fmt.Sprintf("%q", w), "0 to 7, or none for no priority")
		}
		set |= 1 << n
	}
	return set, nil
}

// ParseClasses reads an ETS: of each priority the class, "3:1,5:2", where the others are in class 0, and of each class that shares the
// bandwidth, "0:40,1:60", where the others are strict. "none" leaves out all.
func ParseClasses(classes, bandwidths string) (e ETS, err error) {
	by, err := parsePairs("class of a priority", classes, Classes-1)
	if err != nil {
		return e, err
	}
	for p, c := range by {
		e.Class[p] = uint8(c)
	}
	shares, err := parsePairs("bandwidth of a class", bandwidths, 100)
	if err != nil {
		return e, err
	}
	for c, percent := range shares {
		e.Algorithm[c], e.Bandwidth[c] = Enhanced, uint8(percent)
	}
	return e, e.Check()
}

// MostRate is the highest rate of a class, in Mbit/s.
const MostRate = 1_000_000

// Rates is the most that each class may send, in Mbit/s; 0: as much as the wire carries.
type Rates [Classes]uint32

// ParseRates reads rates of classes: "3:100,5:300", or "none".
func ParseRates(text string) (r Rates, err error) {
	by, err := parsePairs("rate of a class", text, MostRate)
	if err != nil {
		return r, err
	}
	for c, mbits := range by {
		r[c] = mbits
	}
	return r, nil
}

// String returns rates as ParseRates reads them.
func (r Rates) String() string {
	by := map[int]uint32{}
	for c, mbits := range r {
		if mbits != 0 {
			by[c] = mbits
		}
	}
	return formatPairs(by)
}

// Bytes returns the rates in bytes in a second.
func (r Rates) Bytes() (b [Classes]uint64) {
	for c, mbits := range r {
		b[c] = uint64(mbits) * 1e6 / 8
	}
	return b
}

// parsePairs reads "3:1,5:2", with keys from 0 to 7 and values up to most.
func parsePairs(field, text string, most uint64) (map[int]uint32, error) {
	pairs := map[int]uint32{}
	if text == None {
		return pairs, nil
	}
	for w := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(w, ":")
		k, err := strconv.ParseUint(key, 10, 8)
		v, err2 := strconv.ParseUint(value, 10, 32)
		_, twice := pairs[int(k)]
		if err != nil || err2 != nil || k >= Classes || v > most || twice {
			return nil, bad(field, fmt.Sprintf("%q", w), fmt.Sprintf("0 to 7, a colon, and 0 to %d; each once; or none", most))
		}
		pairs[int(k)] = uint32(v)
	}
	return pairs, nil
}

// ParseApplications reads a table: "port:4791=3,ethertype:0x8915=5", or "none".
func ParseApplications(text string) (table []Application, err error) {
	if text == None {
		return nil, nil
	}
	for w := range strings.SplitSeq(text, ",") {
		name, rest, _ := strings.Cut(w, ":")
		number, priority, _ := strings.Cut(rest, "=")
		s, err := ParseSelector(name)
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseUint(number, 0, 16)
		p, err2 := strconv.ParseUint(priority, 10, 8)
		if err != nil || err2 != nil {
			return nil, bad("application", fmt.Sprintf("%q", w), "such as port:4791=3 or ethertype:0x8915=5")
		}
		table = append(table, Application{s, uint16(n), uint8(p)})
	}
	Sort(table)
	return slices.Compact(table), CheckApplications(table)
}

// FormatClasses returns an ETS as ParseClasses reads it.
func FormatClasses(e *ETS) (classes, bandwidths string) {
	by, shares := map[int]uint32{}, map[int]uint32{}
	for p, c := range e.Class {
		if c != 0 {
			by[p] = uint32(c)
		}
	}
	for c, a := range e.Algorithm {
		if a == Enhanced {
			shares[c] = uint32(e.Bandwidth[c])
		}
	}
	return formatPairs(by), formatPairs(shares)
}

func formatPairs(pairs map[int]uint32) string {
	var b []string
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		b = append(b, fmt.Sprintf("%d:%d", k, pairs[k]))
	}
	if len(b) == 0 {
		return None
	}
	return strings.Join(b, ",")
}

// FormatApplications returns a table as ParseApplications reads it.
func FormatApplications(table []Application) string {
	var b []string
	for _, a := range table {
		b = append(b, a.String())
	}
	if len(b) == 0 {
		return None
	}
	return strings.Join(b, ",")
}
