package service

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/subnet"
)

// TestLIDFile: LIDs are kept in a file of OpenSM's form; a wrong line is an error that names it.
func TestLIDFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "guid2lid")
	want := map[uint64]subnet.LIDRange{0x2c90300001001: {First: 1, Last: 1}, 5: {First: 8, Last: 15}}
	if err := saveLIDs(name, want); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(name)
	if text := "0x0000000000000005 0x0008 0x000f\n\n0x0002c90300001001 0x0001 0x0001\n\n"; string(b) != text {
		t.Errorf("%q, want %q", b, text)
	}
	got, err := loadLIDs(name)
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("loaded %v (%v), want %v", got, err, want)
	}
	if got, err := loadLIDs(name + "none"); got != nil || err != nil {
		t.Errorf("without a file: %v (%v), want none and no error", got, err)
	}
	for _, bad := range []string{"0x1", "0x1 0x0 0x1", "0x1 0x5 0x4", "0x1 0xc000 0xc000", "x 1 2"} {
		if _, err := readLIDs(strings.NewReader("\n" + bad)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: error %v, want one about line 2", bad, err)
		}
	}
}
