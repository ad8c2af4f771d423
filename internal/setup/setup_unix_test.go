//go:build unix

package setup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func open(t *testing.T, prefix string) *Target {
	t.Helper()
	x, err := Open(prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// TestInstall_LeavesOthersAlone: what setup has not installed is neither replaced nor removed, and nothing is installed then; a link to
// softvpi, as softvpi tools install makes one, is taken over.
func TestInstall_LeavesOthersAlone(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "bin", "vstat"), "another vstat")
	x := open(t, dir)
	before := tree(t, dir)
	_, err := x.Install("1", itemsOf("1"), nil)
	var foreign *ForeignError
	if !errors.As(err, &foreign) || foreign.Path != filepath.Join(dir, "bin", "vstat") {
		t.Fatal(err)
	}
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("%q", after)
	}
	if err := errors.Join(os.Remove(foreign.Path), os.Symlink("/elsewhere/softvpi", foreign.Path)); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Install("1", itemsOf("1"), nil); err != nil {
		t.Fatal(err)
	}
}

// TestInstall_UnreadableSource: if a file cannot be copied nothing has changed.
func TestInstall_UnreadableSource(t *testing.T) {
	dir := t.TempDir()
	x := open(t, dir)
	_, err := x.Install("1", append(itemsOf("1"), Item{Path: "bin/no", Source: filepath.Join(dir, "no"), Mode: 0o755}), nil)
	if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if left := tree(t, dir); len(left) > 0 {
		t.Errorf("%q", left)
	}
}

// TestDamaged names files and links that are not as they were installed, and no others.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	x := open(t, dir)
	m, err := x.Install("1", itemsOf("1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := x.Damaged(m); len(d) > 0 {
		t.Errorf("%q right behind the installation", d)
	}
	write(t, filepath.Join(dir, "lib", "softvpi", "lib.so"), "other")
	if err := os.Remove(filepath.Join(dir, "bin", "vstat")); err != nil {
		t.Fatal(err)
	}
	if d := x.Damaged(m); !slices.Equal(d, []string{filepath.Join(dir, "bin", "vstat"), filepath.Join(dir, "lib", "softvpi", "lib.so")}) {
		t.Errorf("%q", d)
	}
}

// TestOpen_OneAtATime: two do not change a prefix at once.
func TestOpen_OneAtATime(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if x, err := Open(dir); err == nil {
		x.Close()
		t.Error("opened twice")
	}
}

// TestRecover_LaterJournal: a plan of another version is not carried out.
func TestRecover_LaterJournal(t *testing.T) {
	dir := t.TempDir()
	x := open(t, dir)
	write(t, filepath.Join(dir, planFile), `{"journal": 2, "delete": ["bin/softvpi"]}`)
	write(t, filepath.Join(dir, "bin", "softvpi"), "program")
	if _, err := x.Recover(); err == nil {
		t.Error("it was carried out")
	}
	if _, err := os.Stat(filepath.Join(dir, "bin", "softvpi")); err != nil {
		t.Error(err)
	}
}

// TestUnit_Quoted: systemd takes what means something to it in a path for itself.
func TestUnit_Quoted(t *testing.T) {
	for path, want := range map[string]string{"/usr/bin/softvpi": "/usr/bin/softvpi", "/home/a b/100%/softvpi": `"/home/a b/100%%/softvpi"`} {
		if got := quoted(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}
