package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/umad"
)

// TestDatagramsWhereOthersWrite: in a directory where other users may write no fabric is served and none is used.
func TestDatagramsWhereOthersWrite(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", t.TempDir())
	path := paths.Fabric("x")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	const want = "is not a directory of this user alone"
	if _, err := Listen(path, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("listening: %v", err)
	}
	if _, err := umad.OpenService(umad.ServiceOptions{Socket: path}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a port: %v", err)
	}
}
