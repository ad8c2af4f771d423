//go:build unix

package paths

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A socket in the user's directory below the temporary one is trusted only if the directory is this user's alone. Any
// other place is the user's choice.
func TestSocketsOfOthersAreNotTrusted(t *testing.T) {
	t.Setenv(SocketVariable, "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", t.TempDir())
	socket := Socket()
	dir := filepath.Dir(socket)
	expect := func(what string, own bool) {
		t.Helper()
		if err := Own(socket); (err == nil) != own || err != nil && !strings.Contains(err.Error(),
			dir+" is not a directory of this user alone") {
			t.Errorf("%s: %v, want trusted %v", what, err, own)
		}
	}
	expect("not there", true)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	expect("of this user alone", true)
	for _, mode := range []os.FileMode{0o770, 0o702} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		expect(mode.String(), false)
	}
	if err := Own(filepath.Join(filepath.Dir(dir), "other.sock")); err != nil {
		t.Error("another place: ", err)
	}
	if err := os.Rename(dir, dir+"-0"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir+"-0", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"-0", dir); err != nil {
		t.Fatal(err)
	}
	expect("a link", false)
	if os.Getuid() == 0 {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, 12345, -1); err != nil {
			t.Skip("cannot give a directory away: ", err)
		}
		expect("of another user", false)
	}
}
