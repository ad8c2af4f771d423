// Package impair makes any link as bad as a network can be, for tests and rehearsals: it loses, delays,
// reorders, duplicates, corrupts, marks and slows down what is sent, and repeats exactly the same for the
// same seed.
package impair

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Impairment says what happens to packets that are sent. The zero value impairs nothing.
type Impairment struct {
	// Probabilities from 0 to 1, for each packet independently.
	Loss      float64
	Reorder   float64 // is sent after one to eight of the packets that follow it, or by ReorderBy
	Duplicate float64 // is sent twice
	Corrupt   float64 // one bit is flipped, from the BTH on, where the ICRC covers it
	ECN       float64 // is marked "congestion experienced", whatever it was before

	Delay  time.Duration // before each packet leaves
	Jitter time.Duration // the delay varies by up to this, up or down; order is kept
	// ReorderBy, if not 0, is how much later a reordered packet leaves at most, however many overtake it.
	ReorderBy time.Duration
	Rate      uint64 // bits per second on the wire, Ethernet headers included; 0 means no limit
	Seed      uint64 // for the random choices
}

const (
	maxDelay = 10 * time.Second
	minRate  = 1_000
	maxRate  = 1_000_000_000_000
)

// Enabled reports whether anything happens to packets.
func (i Impairment) Enabled() bool {
	i.Seed = 0
	return i != Impairment{}
}

// Draws reports whether packets' fates or delays depend on random choices.
func (i Impairment) Draws() bool {
	return i.Loss > 0 || i.Reorder > 0 || i.Duplicate > 0 || i.Corrupt > 0 || i.ECN > 0 || i.Jitter > 0
}

// Shortest returns how long a packet takes at least.
func (i Impairment) Shortest() time.Duration { return max(0, i.Delay-i.Jitter) }

// FieldError says which setting is wrong, and what is allowed.
type FieldError struct {
	Field, Value, Want string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("impairment %s=%s: want %s", e.Field, e.Value, e.Want)
}

// names are the settings in the order of String.
var names = []string{"loss", "delay", "jitter", "reorder", "reorder-by", "duplicate", "corrupt", "ecn", "rate", "seed"}

// Parse applies settings such as "loss=1%", "delay=2ms" or "rate=10G" to a copy of i, in any number of
// arguments or separated by spaces. "none" first clears all of them. If one is wrong it returns a
// *FieldError, and i unchanged.
//
// Probabilities are percentages (with or without the sign), delay, jitter and reorder-by durations of up to 10s, rate
// is in bits per second with K, M, G or T, seed is a number.
func (i Impairment) Parse(settings ...string) (Impairment, error) {
	result := i
	for _, s := range strings.Fields(strings.Join(settings, " ")) {
		if s == "none" {
			result = Impairment{}
			continue
		}
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return i, &FieldError{name, "", "a value, as in loss=1%, or none alone"}
		}
		if err := result.set(name, value); err != nil {
			return i, err
		}
	}
	return result, nil
}

func (i *Impairment) set(name, value string) (err error) {
	switch name {
	case "loss":
		i.Loss, err = probability(name, value)
	case "reorder":
		i.Reorder, err = probability(name, value)
	case "reorder-by":
		i.ReorderBy, err = duration(name, value)
	case "duplicate":
		i.Duplicate, err = probability(name, value)
	case "corrupt":
		i.Corrupt, err = probability(name, value)
	case "ecn":
		i.ECN, err = probability(name, value)
	case "delay":
		i.Delay, err = duration(name, value)
	case "jitter":
		i.Jitter, err = duration(name, value)
	case "rate":
		i.Rate, err = rate(name, value)
	case "seed":
		i.Seed, err = strconv.ParseUint(value, 0, 64)
		if err != nil {
			err = &FieldError{name, value, "a number from 0 to 18446744073709551615"}
		}
	default:
		err = &FieldError{name, value, "one of " + strings.Join(names, ", ")}
	}
	return err
}

func probability(name, value string) (float64, error) {
	p, err := strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64)
	if err != nil || !(p >= 0 && p <= 100) {
		return 0, &FieldError{name, value, "a percentage from 0 to 100, as in 0.5%"}
	}
	return p / 100, nil
}

func duration(name, value string) (time.Duration, error) {
	if value == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > maxDelay {
		return 0, &FieldError{name, value, "a duration from 0 to 10s, as in 500us or 2ms"}
	}
	return d, nil
}

var rateUnits = []struct {
	suffix string
	factor float64
}{{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"K", 1e3}}

func rate(name, value string) (uint64, error) {
	want := &FieldError{name, value, "bits per second from 1K to 1T, as in 100M or 2.5G, or 0 for no limit"}
	s, factor := strings.ToUpper(value), 1.0
	for _, u := range rateUnits {
		if t, ok := strings.CutSuffix(s, u.suffix); ok {
			s, factor = t, u.factor
			break
		}
	}
	r, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, want
	}
	r *= factor
	if r != 0 && !(r >= minRate && r <= maxRate) {
		return 0, want
	}
	return uint64(math.Round(r)), nil
}

// String returns the settings in the form that Parse reads, only those in force, or "none".
func (i Impairment) String() string {
	if !i.Enabled() {
		return "none"
	}
	var parts []string
	add := func(name, value string) { parts = append(parts, name+"="+value) }
	percent := func(name string, p float64) {
		if p != 0 {
			add(name, strconv.FormatFloat(p*100, 'g', 6, 64)+"%")
		}
	}
	percent("loss", i.Loss)
	if i.Delay != 0 {
		add("delay", i.Delay.String())
	}
	if i.Jitter != 0 {
		add("jitter", i.Jitter.String())
	}
	percent("reorder", i.Reorder)
	if i.ReorderBy != 0 {
		add("reorder-by", i.ReorderBy.String())
	}
	percent("duplicate", i.Duplicate)
	percent("corrupt", i.Corrupt)
	percent("ecn", i.ECN)
	if i.Rate != 0 {
		add("rate", formatRate(i.Rate))
	}
	add("seed", strconv.FormatUint(i.Seed, 10))
	return strings.Join(parts, " ")
}

// formatRate uses the largest unit that keeps the number exact.
func formatRate(r uint64) string {
	for _, u := range rateUnits {
		if f := uint64(u.factor); r >= f && r%(f/1000) == 0 {
			return strconv.FormatFloat(float64(r)/u.factor, 'f', -1, 64) + u.suffix
		}
	}
	return strconv.FormatUint(r, 10)
}
