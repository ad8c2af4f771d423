package workload

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Sizes is a distribution of sizes: between two points the probability grows evenly.
type Sizes struct{ points []point }

type point struct{ bytes, below float64 }

// LineError is what is wrong in a line of a file.
type LineError struct {
	Line           int
	Value, Allowed string
}

// Error implements error.
func (e *LineError) Error() string {
	return fmt.Sprintf("line %d is %s; allowed: %s", e.Line, e.Value, e.Allowed)
}

const mostPoints = 100_000

// ReadSizes reads a distribution: lines of a size in bytes and the share of all flows that are not larger, as a fraction or as a
// percentage, both growing; the last is 1 or 100. The error is a *LineError, or the reader's.
func ReadSizes(r io.Reader) (*Sizes, error) {
	const allowed = "a size in bytes and the share of flows up to it, both growing, up to 1 or 100"
	s := new(Sizes)
	lines := bufio.NewScanner(r)
	n := 0
	for lines.Scan() {
		n++
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == '\t' || c == ',' || c == ';' })
		if len(words) == 0 {
			continue
		}
		wrong := &LineError{n, strconv.Quote(clip(lines.Text())), allowed}
		if len(words) != 2 || len(s.points) == mostPoints {
			return nil, wrong
		}
		bytes, err := strconv.ParseFloat(words[0], 64)
		below, err2 := strconv.ParseFloat(words[1], 64)
		if err != nil || err2 != nil || !(bytes >= 0 && bytes <= 1e12 && below >= 0 && below <= 100) {
			return nil, wrong
		}
		if k := len(s.points); k > 0 && (bytes < s.points[k-1].bytes || below < s.points[k-1].below) {
			return nil, wrong
		}
		s.points = append(s.points, point{bytes, below})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(s.points) == 0 {
		return nil, &LineError{n, "the end", allowed}
	}
	last := s.points[len(s.points)-1]
	if last.below != 1 && last.below != 100 || last.bytes < 1 {
		return nil, &LineError{n, fmt.Sprintf("the end, at %g", last.below), allowed}
	}
	for i := range s.points {
		s.points[i].below /= last.below
	}
	return s, nil
}

func clip(s string) string { return s[:min(len(s), 60)] }

// Fixed is a distribution of one size.
func Fixed(bytes int64) *Sizes { return &Sizes{[]point{{float64(bytes), 1}}} }

// Mean returns the mean size in bytes.
func (s *Sizes) Mean() float64 {
	mean, before := s.points[0].bytes*s.points[0].below, s.points[0]
	for _, p := range s.points[1:] {
		mean += (p.bytes + before.bytes) / 2 * (p.below - before.below)
		before = p
	}
	return max(mean, 1)
}

// Draw returns a size, at least 1.
func (s *Sizes) Draw(random *rand.Rand) int64 {
	u := random.Float64()
	before := point{s.points[0].bytes, 0}
	for _, p := range s.points {
		if u <= p.below {
			size := p.bytes
			if p.below > before.below {
				size = before.bytes + (p.bytes-before.bytes)*(u-before.below)/(p.below-before.below)
			}
			return max(int64(size), 1)
		}
		before = p
	}
	return max(int64(before.bytes), 1)
}
