package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reading is the reading of a tree. The first error counts; after it everything has its default.
type reading struct {
	file  string
	err   error
	known map[string]bool // paths of all fields that were asked for and may have a value of their own
}

// wrong notes an error at a value.
func (r *reading) wrong(n *node, field, allowed string) {
	r.fail(n, field, n.text(), allowed)
}

func (r *reading) fail(n *node, field, value, allowed string) {
	if r.err == nil {
		r.err = &Error{File: n.file, Line: n.line, Field: field, Value: value, Allowed: allowed}
	}
}

// object is an object that is read: what is asked for is known, and everything else in it is an error in the end.
type object struct {
	r     *reading
	n     *node // nil: it is not there, and all fields have their defaults
	path  string
	at    *node // n, or what would have it
	asked []string
}

func (r *reading) root(n *node) *object { return &object{r: r, n: n, at: n} }

func (o *object) field(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// get returns a field; nil: it is not there.
func (o *object) get(name string) *node {
	if !slices.Contains(o.asked, name) {
		o.asked = append(o.asked, name)
	}
	o.r.known[o.field(name)] = true
	if o.n == nil {
		return nil
	}
	return o.n.fields.by[name]
}

// has reports whether a field is there.
func (o *object) has(name string) bool { return o.n != nil && o.n.fields.by[name] != nil }

// where returns what an error of a field points to.
func (o *object) where(name string) *node {
	if o.has(name) {
		return o.n.fields.by[name]
	}
	return o.at
}

// object returns a field that is one.
func (o *object) object(name string) *object {
	n := o.get(name)
	x := &object{r: o.r, n: n, path: o.field(name), at: o.at}
	if n == nil {
		return x
	}
	x.at = n
	if n.fields == nil {
		o.r.wrong(n, x.path, "an object")
		x.n = nil
	}
	return x
}

// objects returns a field that is an object or an array of them.
func (o *object) objects(name string) (all []*object) {
	n := o.get(name)
	switch {
	case n == nil:
	case n.fields != nil:
		all = append(all, &object{r: o.r, n: n, path: o.field(name), at: n})
	case n.list != nil:
		for i, x := range n.list {
			if x.fields == nil {
				o.r.wrong(x, fmt.Sprintf("%s.%d", o.field(name), i), "an object")
				return nil
			}
			all = append(all, &object{r: o.r, n: x, path: fmt.Sprintf("%s.%d", o.field(name), i), at: x})
		}
	default:
		o.r.wrong(n, o.field(name), "an object or an array of objects")
	}
	return all
}

// end refuses what nobody has asked for.
func (o *object) end() {
	if o.n == nil {
		return
	}
	for _, name := range o.n.fields.names {
		if !slices.Contains(o.asked, name) {
			o.r.fail(o.n.fields.by[name], o.field(name), "no field of a scenario", strings.Join(o.asked, ", "))
		}
	}
}

func (o *object) text(name, otherwise string) string {
	n := o.get(name)
	if n == nil {
		return otherwise
	}
	s, ok := n.scalar.(string)
	if !ok || len(s) > 4096 {
		o.r.wrong(n, o.field(name), "a text")
		return otherwise
	}
	return s
}

// choice returns one of some texts; the first is the default.
func (o *object) choice(name string, allowed ...string) string {
	s := o.text(name, allowed[0])
	if !slices.Contains(allowed, s) {
		o.r.wrong(o.where(name), o.field(name), strings.Join(allowed, ", "))
		return allowed[0]
	}
	return s
}

func (o *object) bool(name string) bool {
	n := o.get(name)
	if n == nil {
		return false
	}
	b, ok := n.scalar.(bool)
	if !ok {
		o.r.wrong(n, o.field(name), "true or false")
	}
	return b
}

// unit is a name of a unit, and how much of the basic one it is.
type unit struct {
	name string
	size float64
}

var (
	bytesUnits = []unit{{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}}
	rateUnits  = []unit{{"Tb/s", 1e12}, {"Gb/s", 1e9}, {"Mb/s", 1e6}, {"Kb/s", 1e3}, {"b/s", 1}}
	timeUnits  = []unit{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}
	shareUnits = []unit{{"%", 0.01}}
	noUnits    = []unit{}
)

// quantity returns a number in basic units: a number of the file counts own of them, a text names its unit.
func (o *object) quantity(name string, units []unit, own, otherwise, low, high float64, allowed string) float64 {
	n := o.get(name)
	if n == nil {
		return otherwise
	}
	v, ok := 0., false
	switch x := n.scalar.(type) {
	case json.Number:
		f, err := x.Float64()
		v, ok = f*own, err == nil
	case string:
		v, ok = parseQuantity(x, units, own)
	}
	if !ok || !(v >= low && v <= high) {
		o.r.wrong(n, o.field(name), allowed)
		return otherwise
	}
	return v
}

func parseQuantity(s string, units []unit, own float64) (float64, bool) {
	for _, u := range units {
		if number, ok := strings.CutSuffix(s, u.name); ok {
			if f, err := strconv.ParseFloat(strings.TrimSpace(number), 64); err == nil {
				return f * u.size, true
			}
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	return f * own, err == nil
}

// bytes returns a size in bytes; a number is KB, of 1,000 bytes.
func (o *object) bytes(name string, otherwise, low, high int64) int64 {
	return int64(o.quantity(name, bytesUnits, 1e3, float64(otherwise), float64(low), float64(high),
		fmt.Sprintf("%s to %s, a number of KB or a text such as 1500B or 2MB", sizeText(low), sizeText(high))) + 0.5)
}

func sizeText(n int64) string {
	for _, u := range bytesUnits {
		if size := int64(u.size); n >= size && n%size == 0 {
			return fmt.Sprintf("%d %s", n/size, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// rate returns a rate in bits per second; a number is Gb/s.
func (o *object) rate(name string, otherwise uint64) uint64 {
	return uint64(o.quantity(name, rateUnits, 1e9, float64(otherwise), 1e6, 1e12,
		"1 Mb/s to 1 Tb/s, a number of Gb/s or a text such as 40Gb/s") + 0.5)
}

// time returns a duration; a number is us.
func (o *object) time(name string, otherwise, low, high time.Duration) time.Duration {
	return time.Duration(o.quantity(name, timeUnits, 1e3, float64(otherwise), float64(low), float64(high),
		fmt.Sprintf("%v to %v, a number of us or a text such as 10ms", low, high)) + 0.5)
}

// share returns a fraction.
func (o *object) share(name string, otherwise, low, high float64) float64 {
	return o.quantity(name, shareUnits, 1, otherwise, low, high, fmt.Sprintf("%g to %g, or a text such as 1%%", low, high))
}

func (o *object) float(name string, otherwise, low, high float64) float64 {
	return o.quantity(name, noUnits, 1, otherwise, low, high, fmt.Sprintf("%g to %g", low, high))
}

func (o *object) int(name string, otherwise, low, high int) int {
	f := o.quantity(name, noUnits, 1, float64(otherwise), float64(low), float64(high), fmt.Sprintf("%d to %d", low, high))
	if f != float64(int(f)) {
		o.r.wrong(o.where(name), o.field(name), fmt.Sprintf("%d to %d", low, high))
		return otherwise
	}
	return int(f)
}

// priorities returns a set of priorities, bit p for priority p.
func (o *object) priorities(name string, otherwise uint8) (set uint8) {
	n := o.get(name)
	if n == nil {
		return otherwise
	}
	all := n.list
	if n.scalar != nil && n.list == nil {
		all = []*node{n}
	}
	for _, x := range all {
		v, ok := x.scalar.(json.Number)
		p, err := strconv.Atoi(v.String())
		if !ok || err != nil || p < 0 || p > 7 {
			o.r.wrong(x, o.field(name), "an array of priorities, 0 to 7")
			return otherwise
		}
		set |= 1 << p
	}
	if all == nil {
		o.r.wrong(n, o.field(name), "an array of priorities, 0 to 7")
	}
	return set
}
