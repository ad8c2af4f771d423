package systemtest

import (
	"flag"
	"strings"
	"testing"
)

// failed is a test that notes why it ended.
type failed struct {
	testing.TB
	name, text string
}

func (f *failed) Name() string              { return f.name }
func (f *failed) Helper()                   {}
func (f *failed) Fatalf(s string, _ ...any) { f.text = s }

func TestRequired_FailsTestsWithoutAMark(t *testing.T) {
	short := flag.Lookup("test.short")
	was := short.Value.String()
	t.Cleanup(func() { short.Value.Set(was) })
	for value, runs := range map[string]bool{"false": true, "true": false} {
		short.Value.Set(value)
		reached := false
		t.Run("marked", func(t *testing.T) {
			Mark(t)
			reached = true
		})
		if reached != runs {
			t.Errorf("with -short=%s a marked test runs: %v, want %v", value, reached, runs)
		}
	}
	for name, fails := range map[string]bool{"TestX": true, "TestX/sub": true, "BenchmarkX": false, "TestMarked": false,
		"TestMarked/sub": false} {
		tests.Store("TestMarked", true)
		f := &failed{name: name}
		Required(f)
		if got := strings.Contains(f.text, "systemtest.Mark(t)"); got != fails {
			t.Errorf("%s fails: %v, want %v", name, got, fails)
		}
	}
}
