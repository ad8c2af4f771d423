package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/link/cable"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestCablesWhereOthersWrite: in a directory where other users may write no fabric listens and no adapter connects.
func TestCablesWhereOthersWrite(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", t.TempDir())
	path := paths.Cables("x")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	const want = "is not a directory of this user alone"
	if l, err := Listen(path, 0o600); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("listening: %v, error %v; want a refusal", l, err)
	}
	told := make(chan error, 100)
	farAt(t, cable.Config{Hello: cable.Hello{Node: "node00000", Program: "test"}, Socket: path, Tell: func(err error) { told <- err }})
	select {
	case err := <-told:
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("plugging in: error %v, want a refusal", err)
		}
	case <-time.After(await.Limit):
		t.Error("plugging in: nothing was reported")
	}
}
