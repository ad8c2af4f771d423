package registry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestDamageWhileOpen: whatever another program does to the file of an open registry, the next change, or closing, writes it
// anew with all that was acknowledged, tells, and keeps what was found; the process goes on.
func TestDamageWhileOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there the system protects a mapped file")
	}
	older := []byte(nil) // the file as it was before the last change
	for name, damage := range map[string]func(r *Registry, path string) error{
		"cut to nothing": func(_ *Registry, path string) error { return os.Truncate(path, 0) },
		"cut to a page":  func(_ *Registry, path string) error { return os.Truncate(path, 4096) },
		"cut unnoticed": func(r *Registry, path string) error { // between the check and the access
			return errors.Join(os.Truncate(path, 0), r.store.note())
		},
		"zeros": func(r *Registry, path string) error {
			return os.WriteFile(path, make([]byte, r.store.info.Size()), 0o600)
		},
		"an older one": func(_ *Registry, path string) error { return os.WriteFile(path, older, 0o600) },
		"removed":      func(_ *Registry, path string) error { return os.Remove(path) },
		"replaced": func(_ *Registry, path string) error {
			return errors.Join(os.WriteFile(path+".other", older, 0o600), os.Rename(path+".other", path))
		},
	} {
		for _, change := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, change %v", name, change), func(t *testing.T) {
				dir := t.TempDir()
				r := open2(t, dir)
				var told []Damage
				r.SetDamaged(func(d Damage) { told = append(told, d) })
				file := filepath.Join(dir, FileName)
				for i := range 40 {
					older, _ = os.ReadFile(file)
					if err := r.Set(path(t, roce), String(fmt.Sprint("value ", i), strings.Repeat("x", 3000))); err != nil {
						t.Fatal(err)
					}
				}
				if err := damage(r, file); err != nil {
					t.Fatal(err)
				}
				if !change && (name == "zeros" || name == "an older one" || name == "cut unnoticed") {
					t.Skip("only a change reads the file")
				}
				if change {
					for _, v := range []string{"after", "and once more"} {
						if err := r.Set(path(t, roce), String(v, v)); err != nil {
							t.Fatal(err)
						}
					}
				}
				want := dump(r)
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				if len(told) != 1 || told[0].Path != file || !errors.Is(told[0].Cause, errDamaged) ||
					(told[0].Aside == "") != (name == "removed") {
					t.Errorf("told of %+v, want one damage of %s", told, file)
				}
				again := open2(t, dir)
				defer again.Close()
				if aside, cause := again.SetAside(); aside != "" || dump(again) != want {
					t.Errorf("the file does not hold what was acknowledged: %v", cause)
				}
				left, _ := filepath.Glob(file + "*")
				if n := map[bool]int{true: 1, false: 2}[name == "removed"]; len(left) != n {
					t.Errorf("the directory holds %v, want %d files", left, n)
				}
			})
		}
	}
}

// TestDamageThatStays: where the file cannot be written anew the change is refused, naming the file, and so does closing.
func TestDamageThatStays(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there the system protects an open file")
	}
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := open2(t, dir)
	before := dump(r)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	var e *StoreError
	if err := r.Set(path(t, roce), String("value", "x")); !errors.As(err, &e) || !strings.Contains(err.Error(), FileName) ||
		dump(r) != before {
		t.Errorf("a change: %v, want a *StoreError that names the file, and nothing changed", err)
	}
	if err := r.Close(); !errors.As(err, &e) || !strings.Contains(err.Error(), "it was removed") {
		t.Errorf("closing: %v, want a *StoreError that says why", err)
	}
}
