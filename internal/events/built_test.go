package events

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// TestBuiltEventsAreRaised: an event that the catalogue calls built is raised somewhere, and no other is.
func TestBuiltEventsAreRaised(t *testing.T) {
	raised := raisedIn(t, "../..")
	for i := range catalogue.Events() {
		e := &catalogue.Events()[i]
		if built := e.Status == catalogue.Built; built != raised[e.Symbol] {
			t.Errorf("%s of %s: built %v, raised somewhere %v", e.Symbol, e.Source, built, raised[e.Symbol])
		}
	}
}

// raisedIn returns the events that the sources below root raise.
func raisedIn(t *testing.T, root string) map[string]bool {
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			filepath.Base(path) == "raised.go" {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	raised := map[string]bool{}
	for _, e := range kinds {
		raised[symbolOf(e)] = strings.Contains(all.String(), "events."+symbolOf(e)+"{") ||
			strings.Contains(all.String(), "l.Raise(0, "+symbolOf(e)+"{") || strings.Contains(all.String(), "newRecord(0, "+symbolOf(e)+"{")
	}
	return raised
}
