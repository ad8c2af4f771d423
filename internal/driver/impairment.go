package driver

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Impairment is what a link does to the packets that it sends. Shares are from 0
// to 1 of the packets.
type Impairment struct {
	Loss, Reorder, Duplicate, Corrupt, ECN float64
	Delay, Jitter                          time.Duration
	Rate                                   uint64 // bits a second; 0: no limit
	Seed                                   uint64
}

// ParseImpairment reads the settings of `softvpi link set`: words such as
// loss=1% or loss=0.01, delay=50us, rate=1G, seed=7. An empty value and "off"
// mean none; no words at all switch everything off. Errors are *FieldError.
func ParseImpairment(words []string) (Impairment, error) {
	var p Impairment
	seen := map[string]bool{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return p, &FieldError{"setting", strconv.Quote(w), "loss= delay= jitter= reorder= duplicate= corrupt= ecn= rate= seed="}
		}
		if seen[key] {
			return p, &FieldError{key, "given twice", "once"}
		}
		seen[key] = true
		if err := p.set(key, value); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *Impairment) set(key, value string) (err error) {
	share := map[string]*float64{"loss": &p.Loss, "reorder": &p.Reorder, "duplicate": &p.Duplicate, "corrupt": &p.Corrupt, "ecn": &p.ECN}
	off := value == "" || value == "off" || value == "0"
	switch {
	case share[key] != nil && off, key == "delay" && off, key == "jitter" && off, key == "rate" && off, key == "seed" && off:
		return nil
	case share[key] != nil:
		*share[key], err = parseShare(key, value)
	case key == "delay":
		p.Delay, err = parseDelay(key, value)
	case key == "jitter":
		p.Jitter, err = parseDelay(key, value)
	case key == "rate":
		p.Rate, err = parseRate(value)
	case key == "seed":
		if p.Seed, err = strconv.ParseUint(value, 0, 64); err != nil {
			err = &FieldError{key, strconv.Quote(value), "a number from 0 to 18446744073709551615"}
		}
	default:
		err = &FieldError{"setting", strconv.Quote(key), "loss= delay= jitter= reorder= duplicate= corrupt= ecn= rate= seed="}
	}
	return err
}

func parseShare(key, value string) (float64, error) {
	number, percent := strings.CutSuffix(value, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, &FieldError{key, strconv.Quote(value), "0 to 1, or 0% to 100%"}
	}
	return v, nil
}

func parseDelay(key, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > 10*time.Second {
		return 0, &FieldError{key, strconv.Quote(value), "0s to 10s, such as 50us"}
	}
	return d, nil
}

func parseRate(value string) (uint64, error) {
	number := strings.TrimRight(value, "kMG")
	factor, known := map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[value[len(number):]]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || !(v*factor >= 1000 && v*factor <= 1e12) {
		return 0, &FieldError{"rate", strconv.Quote(value), "1k to 1000G bits a second"}
	}
	return uint64(v * factor), nil
}

// String returns the settings in the form that ParseImpairment reads; empty for none.
func (p Impairment) String() string {
	var words []string
	add := func(set bool, format string, v any) {
		if set {
			words = append(words, fmt.Sprintf(format, v))
		}
	}
	add(p.Loss > 0, "loss=%g", p.Loss)
	add(p.Delay > 0, "delay=%v", p.Delay)
	add(p.Jitter > 0, "jitter=%v", p.Jitter)
	add(p.Reorder > 0, "reorder=%g", p.Reorder)
	add(p.Duplicate > 0, "duplicate=%g", p.Duplicate)
	add(p.Corrupt > 0, "corrupt=%g", p.Corrupt)
	add(p.ECN > 0, "ecn=%g", p.ECN)
	add(p.Rate > 0, "rate=%d", p.Rate)
	add(p.Seed > 0, "seed=%d", p.Seed)
	return strings.Join(words, " ")
}
