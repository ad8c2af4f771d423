package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// A process that is asked for a profile of itself writes a complete one when it ends, and says so if it cannot.
func TestProcessesWriteProfiles(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	env := p.env
	p.env = append(env, profilesVariable+"="+p.dir)
	if status, _, errs := p.run(t, "version"); status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	files, err := filepath.Glob(filepath.Join(p.dir, "*.pprof"))
	if err != nil || len(files) != 1 {
		t.Fatalf("profiles %q, %v, want one", files, err)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f) // profiles are compressed
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); err != nil || !strings.Contains(string(b), "nanoseconds") {
		t.Errorf("%d bytes, %v, want a profile of nanoseconds", len(b), err)
	}

	p.env = append(env, profilesVariable+"="+filepath.Join(p.dir, "missing"))
	if status, _, errs := p.run(t, "version"); status != 1 || !strings.Contains(errs, profilesVariable) {
		t.Errorf("status %d, %q, want 1 and the name of the variable", status, errs)
	}
}
