package retry

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCount_AddsALineForEachRetry(t *testing.T) {
	name := filepath.Join(t.TempDir(), "retries")
	t.Setenv(Variable, name)
	Count(t, "rping", "early")
	Count(t, "rping", "early")
	Count(t, "qperf", "late")
	got, err := os.ReadFile(name)
	if want := "retry: rping: early\nretry: rping: early\nretry: qperf: late\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
