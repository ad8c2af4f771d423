package impair

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		from Impairment
		in   string
		want Impairment
		text string
	}{
		{in: "", want: Impairment{}, text: "none"},
		{in: "loss=5%", want: Impairment{Loss: 0.05}, text: "loss=5% seed=0"},
		{in: "loss=0.5", want: Impairment{Loss: 0.005}, text: "loss=0.5% seed=0"},
		{in: "loss=100%", want: Impairment{Loss: 1}, text: "loss=100% seed=0"},
		{in: "delay=2ms jitter=500us", want: Impairment{Delay: 2 * time.Millisecond, Jitter: 500 * time.Microsecond},
			text: "delay=2ms jitter=500µs seed=0"},
		{in: "reorder=5 reorder-by=3ms", want: Impairment{Reorder: 0.05, ReorderBy: 3 * time.Millisecond},
			text: "reorder=5% reorder-by=3ms seed=0"},
		{in: "rate=10G", want: Impairment{Rate: 10e9}, text: "rate=10G seed=0"},
		{in: "rate=2.5g", want: Impairment{Rate: 2.5e9}, text: "rate=2.5G seed=0"},
		{in: "rate=1500", want: Impairment{Rate: 1500}, text: "rate=1.5K seed=0"},
		{in: "rate=1234567", want: Impairment{Rate: 1234567}, text: "rate=1234.567K seed=0"},
		{in: "reorder=1 duplicate=2 corrupt=3 ecn=4 seed=7", want: Impairment{Reorder: 0.01, Duplicate: 0.02, Corrupt: 0.03, ECN: 0.04,
			Seed: 7},
			text: "reorder=1% duplicate=2% corrupt=3% ecn=4% seed=7"},
		{from: Impairment{Loss: 0.5, Seed: 3}, in: "delay=1s", want: Impairment{Loss: 0.5, Seed: 3, Delay: time.Second},
			text: "loss=50% delay=1s seed=3"},
		{from: Impairment{Loss: 0.5}, in: "loss=0 delay=0", want: Impairment{}, text: "none"},
		{from: Impairment{Loss: 0.5}, in: "none ecn=1%", want: Impairment{ECN: 0.01}, text: "ecn=1% seed=0"},
		{in: "seed=9", want: Impairment{Seed: 9}, text: "none"},
	} {
		got, err := c.from.Parse(c.in)
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q: (-want +got)\n%s", c.in, d)
		}
		if got.String() != c.text {
			t.Errorf("%q is written %q, want %q", c.in, got, c.text)
		}
	}
}

func TestParseErrorsNameTheField(t *testing.T) {
	before := Impairment{Loss: 0.25}
	for _, c := range []struct{ in, field, want string }{
		{"loss=101", "loss", "0 to 100"},
		{"loss=-1%", "loss", "0 to 100"},
		{"loss=NaN", "loss", "0 to 100"},
		{"loss=", "loss", "0 to 100"},
		{"corrupt=x", "corrupt", "0 to 100"},
		{"delay=5", "delay", "0 to 10s"},
		{"delay=11s", "delay", "0 to 10s"},
		{"reorder-by=11s", "reorder-by", "0 to 10s"},
		{"jitter=-1ms", "jitter", "0 to 10s"},
		{"rate=fast", "rate", "1K to 1T"},
		{"rate=999", "rate", "1K to 1T"},
		{"rate=-1G", "rate", "1K to 1T"},
		{"rate=2T", "rate", "1K to 1T"},
		{"rate=NaN", "rate", "1K to 1T"},
		{"rate=InfG", "rate", "1K to 1T"},
		{"seed=-1", "seed", "0 to 18446744073709551615"},
		{"lost=1", "lost", "loss, delay"},
		{"loss", "loss", "a value"},
		{"delay=1ms loss=200", "loss", "0 to 100"},
	} {
		got, err := before.Parse(c.in)
		var fe *FieldError
		if !errors.As(err, &fe) || fe.Field != c.field || !strings.Contains(fe.Error(), c.want) {
			t.Errorf("%q: error %v, want one of %s that says %q", c.in, err, c.field, c.want)
		}
		if got != before {
			t.Errorf("%q changed the settings to %v", c.in, got)
		}
	}
}

// TestStringRoundTrip: Parse reads what String writes, to the six digits that it writes.
func TestStringRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		percent := func(name string) float64 { return float64(rapid.IntRange(0, 1000).Draw(t, name)) / 10 / 100 }
		i := Impairment{
			Loss: percent("loss"), Reorder: percent("reorder"), Duplicate: percent("duplicate"),
			Corrupt: percent("corrupt"), ECN: percent("ecn"),
			Delay:     time.Duration(rapid.Int64Range(0, int64(maxDelay)).Draw(t, "delay")),
			Jitter:    time.Duration(rapid.Int64Range(0, int64(maxDelay)).Draw(t, "jitter")),
			ReorderBy: time.Duration(rapid.Int64Range(0, int64(maxDelay)).Draw(t, "reorder-by")),
			Rate:      rapid.Uint64Range(minRate, maxRate).Draw(t, "rate"),
			Seed:      rapid.Uint64().Draw(t, "seed"),
		}
		got, err := Impairment{}.Parse(i.String())
		if err != nil {
			t.Fatal(err)
		}
		near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
		rate := cmp.Comparer(func(a, b uint64) bool { return a == b })
		if d := cmp.Diff(i, got, near, rate); d != "" {
			t.Fatalf("%s: (-want +got)\n%s", i, d)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("loss=5% delay=2ms jitter=1us reorder=1 duplicate=1 corrupt=1 ecn=1 rate=10G seed=1")
	f.Fuzz(func(t *testing.T, s string) {
		i, err := Impairment{}.Parse(s)
		if err != nil {
			return
		}
		for _, p := range []float64{i.Loss, i.Reorder, i.Duplicate, i.Corrupt, i.ECN} {
			if !(p >= 0 && p <= 1) {
				t.Fatalf("%q: probability %v", s, p)
			}
		}
		if i.Delay < 0 || i.Delay > maxDelay || i.Jitter < 0 || i.Jitter > maxDelay || i.Rate > maxRate {
			t.Fatalf("%q is read as %+v, which is out of range", s, i)
		}
	})
}
