package inputfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLimit: a file is read up to the limit, and one byte more is an error, even in a file that claims to have none.
func TestLimit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	for _, c := range []struct {
		size, limit int
		wrong       bool
	}{{0, 0, false}, {10, 10, false}, {11, 10, true}, {1, 0, true}, {100000, 100000, false}} {
		if err := os.WriteFile(name, []byte(strings.Repeat("x", c.size)), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := Read(name, int64(c.limit))
		var e *Error
		if errors.As(err, &e) != c.wrong || !c.wrong && (err != nil || len(b) != c.size) {
			t.Errorf("%d bytes with a limit of %d: %d bytes, %v", c.size, c.limit, len(b), err)
		}
	}
	f, err := Open(name, 100000)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(name, []byte(strings.Repeat("x", 200000)), 0o600); err != nil { // it grows
		t.Fatal(err)
	}
	var e *Error
	if b, err := io.ReadAll(f); !errors.As(err, &e) || len(b) != 100000 {
		t.Errorf("a file that grew: %d bytes, %v", len(b), err)
	}
}

// TestNoFile: the system's errors stay what they are, and a directory is named as one.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(filepath.Join(dir, "none"), 1); !errors.Is(err, fs.ErrNotExist) || !os.IsNotExist(err) {
		t.Error(err)
	}
	if _, err := Read(dir, 1); err == nil || !strings.HasSuffix(err.Error(), " is a directory; allowed: a regular file") {
		t.Error(err)
	}
}

// TestReadFrom: a stream is read to its end, within the limit, and until the context ends.
func TestReadFrom(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	b, err := ReadFrom(ctx, strings.NewReader("0123456789"), "standard input", 10)
	if err != nil || string(b) != "0123456789" {
		t.Errorf("%q, %v", b, err)
	}
	var e *Error
	if _, err := ReadFrom(ctx, strings.NewReader("0123456789+"), "standard input", 10); !errors.As(err, &e) {
		t.Errorf("beyond the limit: %v", err)
	}
	r, w := io.Pipe()
	defer w.Close()
	go stop()
	if _, err := ReadFrom(ctx, r, "standard input", 10); !errors.Is(err, context.Canceled) {
		t.Errorf("a silent stream: %v", err)
	}
}
