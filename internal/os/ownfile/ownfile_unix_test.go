//go:build unix

package ownfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOthersFiles: a link, a pipe, a file with another name or of another user is not used in place of the driver's own
// file, and is left as it was.
func TestOthersFiles(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("as it was"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		lay  func(at string) error
		want string
	}{
		"link": {func(at string) error { return os.Symlink(victim, at) },
			"is a symbolic link; allowed: a regular file, or nothing"},
		"link-nowhere": {func(at string) error { return os.Symlink(victim+"-2", at) }, "is a symbolic link"},
		"name":         {func(at string) error { return os.Link(victim, at) }, "is a file with 2 names"},
		"pipe":         {func(at string) error { return syscall.Mkfifo(at, 0o600) }, "is a pipe"},
		"dir":          {func(at string) error { return os.Mkdir(at, 0o700) }, "is a directory"},
		"others": {func(at string) error {
			return errors.Join(os.WriteFile(at, nil, 0o600), os.Chown(at, 12345, -1))
		}, "is a file of user 12345"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "others" && os.Geteuid() != 0 {
				t.Skip("root only: a file of another user")
			}
			at := filepath.Join(dir, name)
			if err := c.lay(at); err != nil {
				t.Fatal(err)
			}
			for _, flag := range []int{os.O_RDWR | os.O_CREATE, os.O_WRONLY | os.O_CREATE | os.O_APPEND} {
				var e *Error
				f, err := Open(at, flag)
				if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				if f != nil {
					f.Close()
				}
			}
		})
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "as it was" {
		t.Errorf("the linked file holds %q, %v", b, err)
	}
	if _, err := os.Lstat(victim + "-2"); err == nil {
		t.Error("the file that a link names was created")
	}
}

// TestOwnFile: a file that is there is opened, and one that is not is created for the owner alone.
func TestOwnFile(t *testing.T) {
	at := filepath.Join(t.TempDir(), "own")
	for _, text := range []string{"first", "first, second"} {
		f, err := Open(at, os.O_RDWR|os.O_CREATE)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(text), 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	info, err := os.Stat(at)
	if err != nil || info.Mode() != 0o600 || info.Size() != 13 {
		t.Errorf("%v, %v; want 13 bytes of mode 0600", info, err)
	}
}
