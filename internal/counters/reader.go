package counters

import (
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// Reader turns snapshots into values: totals and levels as they are, rates over the time since the
// previous snapshot. Each reader needs one of its own. The zero value is ready to use; it must not be used
// concurrently.
type Reader struct {
	uptime time.Duration
	before map[string]reading
}

type reading struct {
	epoch, raw uint64
}

// Reading is a counter as a reader sees it.
type Reading struct {
	Set      string `json:"set"` // printed name
	Instance string `json:"instance"`
	Counter  string `json:"counter"` // printed name
	Unit     string `json:"unit,omitempty"`
	// Value is null if nothing counts the counter, and for a rate at the first reading and after a reset.
	Value Number `json:"value"`
}

// Number is a value that may be missing. Whole numbers keep all their digits.
type Number struct {
	Known   bool
	Whole   bool
	Integer uint64  // if Whole
	Real    float64 // otherwise
}

// MarshalJSON writes null or the number.
func (n Number) MarshalJSON() ([]byte, error) { return []byte(n.text("null", -1)), nil }

// UnmarshalJSON reads null or a number.
func (n *Number) UnmarshalJSON(b []byte) (err error) {
	*n = Number{}
	s := string(b)
	if s == "null" {
		return nil
	}
	if n.Integer, err = strconv.ParseUint(s, 10, 64); err == nil {
		n.Known, n.Whole = true, true
		return nil
	}
	if n.Real, err = strconv.ParseFloat(s, 64); err == nil {
		n.Known = true
	}
	return err
}

// String returns the number, or "-" if there is none.
func (n Number) String() string { return n.text("-", 1) }

func (n Number) text(missing string, digits int) string {
	switch {
	case !n.Known:
		return missing
	case n.Whole:
		return strconv.FormatUint(n.Integer, 10)
	}
	return strconv.FormatFloat(n.Real, 'f', digits, 64)
}

// Read returns the values of a snapshot, in the same order.
func (r *Reader) Read(s Snapshot) []Reading {
	var out []Reading
	now := map[string]reading{}
	interval := s.Uptime - r.uptime
	for i := range s.Instances {
		in := &s.Instances[i]
		set, ok := catalogue.CounterSetNamed(in.Set)
		if !ok {
			continue
		}
		for _, v := range in.Values {
			at := set.Index(v.Counter)
			if at < 0 {
				continue
			}
			k := &set.Counters[at]
			x := Reading{Set: set.Name, Instance: in.Name, Counter: k.Name, Unit: k.Unit}
			if v.Raw != nil {
				id := in.Set + "\x00" + in.Name + "\x00" + v.Counter
				now[id] = reading{in.Epoch, *v.Raw}
				x.Value = r.value(k, id, now[id], interval)
			}
			out = append(out, x)
		}
	}
	r.uptime, r.before = s.Uptime, now
	return out
}

func (r *Reader) value(k *catalogue.Counter, id string, now reading, interval time.Duration) Number {
	if k.Kind != catalogue.Rate {
		return Number{Known: true, Whole: true, Integer: now.raw}
	}
	was, ok := r.before[id]
	if !ok || was.epoch != now.epoch || now.raw < was.raw || interval <= 0 {
		return Number{}
	}
	return Number{Known: true, Real: float64(now.raw-was.raw) * k.Scale() / interval.Seconds()}
}

// HasRates reports whether a snapshot holds rates, which take two readings.
func (s Snapshot) HasRates() bool {
	for i := range s.Instances {
		set, ok := catalogue.CounterSetNamed(s.Instances[i].Set)
		if !ok {
			continue
		}
		for _, v := range s.Instances[i].Values {
			if at := set.Index(v.Counter); at >= 0 && set.Counters[at].Kind == catalogue.Rate && v.Raw != nil {
				return true
			}
		}
	}
	return false
}
