package registry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const roce = `HKLM\SYSTEM\CurrentControlSet\Services\mlx5\Parameters\Roce`

func path(t testing.TB, s string) Path {
	t.Helper()
	p, err := ParsePath(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func open2(t testing.TB, dir string) *Registry {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// dump returns everything below SYSTEM\CurrentControlSet as text.
func dump(r *Registry) string {
	var s strings.Builder
	r.Walk(Path{}, func(k Key) bool {
		fmt.Fprintln(&s, k.Path)
		for _, v := range k.Values {
			fmt.Fprintf(&s, "  %s %v %x\n", v.Name, v.Type, v.Data)
		}
		return true
	})
	return s.String()
}

func TestPaths(t *testing.T) {
	for in, want := range map[string]string{
		roce:                             `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\mlx5\Parameters\Roce`,
		`hkey_local_machine\system`:      `HKEY_LOCAL_MACHINE\system`,
		`HKLM`:                           `HKEY_LOCAL_MACHINE`,
		`hklm\`:                          `HKEY_LOCAL_MACHINE`,
		`HKLM\SYSTEM\CurrentControlSet\`: `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet`,
	} {
		if got := path(t, in).String(); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for _, bad := range []string{``, `HKCU\Software`, `SYSTEM\CurrentControlSet`, `HKLM\SOFTWARE\x`, `HKLM\SYSTEM\CurrentControlSet\a\\b`,
		`HKLM\SYSTEM\CurrentControlSet\` + strings.Repeat("x", 256), `HKLM\SYSTEM\CurrentControlSet\` + strings.Repeat(`x\`, 80),
		"HKLM\\SYSTEM\\CurrentControlSet\\a\x00b"} {
		var e *pathError
		if _, err := ParsePath(bad); !errors.As(err, &e) {
			t.Errorf("%.40q: %v, want a *PathError", bad, err)
		}
	}
}

// TestCaseIsKeptAndDoesNotCount: names are compared without regard to case, and keep the case in which they were
// first written.
func TestCaseIsKeptAndDoesNotCount(t *testing.T) {
	dir := t.TempDir()
	r := open2(t, dir)
	if err := r.Set(path(t, roce), DWord("roce_mode", 2)); err != nil {
		t.Fatal(err)
	}
	if err := r.Set(path(t, strings.ToUpper(roce)), DWord("ROCE_Mode", 0)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	r = open2(t, dir)
	k, ok := r.Key(path(t, strings.ToLower(roce)))
	if !ok || k.Path.String() != path(t, roce).String() || len(k.Values) != 1 || !cmp.Equal(k.Values[0], DWord("roce_mode", 0)) {
		t.Errorf("the key is %v %+v, want one value with its first name and last content", ok, k)
	}
}

func TestChanges(t *testing.T) {
	r := open2(t, t.TempDir())
	p := path(t, roce)
	for _, v := range []Value{DWord("a", 1), String("b", "x"), String("", "the default value")} {
		if err := r.Set(p, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Apply(Change{Kind: DeleteValue, Key: p, Value: Value{Name: "A"}}); err != nil {
		t.Error(err)
	}
	if _, ok := r.Get(p, "a"); ok {
		t.Error("a deleted value still exists")
	}
	if err := r.Apply(Change{Kind: DeleteValue, Key: p, Value: Value{Name: "a"}}); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting a value that does not exist: error %v, want %v", err, ErrNotFound)
	}
	if err := r.Apply(Change{Kind: DeleteValue, Key: p, Value: Value{Name: "a"}, Lenient: true}); err != nil {
		t.Errorf("deleting it leniently: %v", err)
	}
	if err := r.Apply(Change{Kind: DeleteValues, Key: p}); err != nil {
		t.Error(err)
	}
	if k, ok := r.Key(p); !ok || len(k.Values) != 0 {
		t.Errorf("after deleting all values: %v %v", ok, k)
	}
	if err := r.Apply(Change{Kind: DeleteKey, Key: path(t, `HKLM\SYSTEM\CurrentControlSet\Services\mlx5`)}); err != nil {
		t.Error(err)
	}
	if _, ok := r.Key(p); ok {
		t.Error("a key below a deleted one still exists")
	}
	if err := r.Apply(Change{Kind: DeleteKey, Key: path(t, `HKLM\SYSTEM\CurrentControlSet\Services`)}); err == nil {
		t.Error("the root of the services was deleted")
	}
}

// TestApplyIsAllOrNothing: all changes of an Apply are made or none, in memory and in the file.
func TestApplyIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	r := open2(t, dir)
	p := path(t, roce)
	before := dump(r)
	err := r.Apply(
		Change{Kind: SetValue, Key: p, Value: DWord("roce_mode", 0)},
		Change{Kind: SetValue, Key: p, Value: Value{Name: "big", Type: Binary, Data: make([]byte, maxData+1)}},
	)
	var e *changeError
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "allowed: 1048576") {
		t.Errorf("error %v, want one with the allowed size", err)
	}
	if got := dump(r); got != before {
		t.Errorf("something was changed:\n%s", got)
	}
	r.Close()
	if got := dump(open2(t, dir)); got != before {
		t.Errorf("something was changed in the file:\n%s", got)
	}
}

func TestLimits(t *testing.T) {
	r := NewVolatile("test")
	var all []Change
	for i := range maxTotal/maxData + 1 {
		all = append(all, Change{Kind: SetValue, Key: path(t, roce), Value: Value{Name: fmt.Sprint(i), Type: Binary,
			Data: make([]byte, maxData)}})
	}
	if err := r.Apply(all...); !errors.Is(err, ErrFull) {
		t.Errorf("%d values of %d bytes: error %v, want %v", len(all), maxData, err, ErrFull)
	}
	if err := r.Set(path(t, roce), DWord(strings.Repeat("ß", 16384), 1)); err == nil {
		t.Error("a name that is too long was accepted")
	}
	if err := r.Set(path(t, roce), DWord("a\nb", 1)); err == nil {
		t.Error("a name of two lines was accepted")
	}
}

func TestSecondOpenIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open2(t, dir)
	if _, err := Open(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
}

// TestFileHoldsTheTree: whatever the changes, the file holds the same tree as memory.
func TestFileHoldsTheTree(t *testing.T) {
	t.Parallel()
	names := []string{"a", "B", "bb", "Ü", "b\tx", "long " + strings.Repeat("y", 200)}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "registry")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { r.Close() }()
		model := NewVolatile("model")
		for range rapid.IntRange(1, 8).Draw(t, "applies") {
			var changes []Change
			for range rapid.IntRange(1, 6).Draw(t, "changes") {
				p := Path{ControlSet + `\Services`}
				for range rapid.IntRange(1, 3).Draw(t, "depth") {
					p = p.Child(rapid.SampledFrom(names).Draw(t, "key"))
				}
				changes = append(changes, Change{
					Kind: Kind(rapid.IntRange(0, 4).Draw(t, "kind")), Key: p, Lenient: true,
					Value: Value{
						rapid.SampledFrom(append(names, "")).Draw(t, "name"), Type(rapid.IntRange(0, 12).Draw(t, "type")),
						rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "data"),
					},
				})
			}
			if err := errors.Join(r.Apply(changes...), model.Apply(changes...)); err != nil {
				t.Fatal(err)
			}
		}
		want, measured := dump(model), r.root.Load().size
		if got := dump(r); got != want {
			t.Fatalf("in memory:\n%s\nwant\n%s", got, want)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if r, err = Open(dir); err != nil {
			t.Fatal(err)
		}
		if got := dump(r); got != want {
			t.Fatalf("from the file:\n%s\nwant\n%s", got, want)
		}
		if got := r.root.Load().size; got != measured {
			t.Fatalf("size %v from the file, %v before", got, measured)
		}
	})
}

func TestCorruptFileIsKeptAside(t *testing.T) {
	sound := func(t *testing.T, dir string) []byte {
		r := open2(t, dir)
		var changes []Change
		for i := range 300 { // several pages
			changes = append(changes, Change{Kind: SetValue, Key: path(t, roce), Value: String(fmt.Sprint("value ", i),
				strings.Repeat("x", 40))})
		}
		if err := r.Apply(changes...); err != nil {
			t.Fatal(err)
		}
		r.Close()
		b, err := os.ReadFile(filepath.Join(dir, FileName))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, damage := range map[string]func([]byte) []byte{
		"empty":          func(b []byte) []byte { return nil },
		"short":          func(b []byte) []byte { return b[:5000] },
		"zeros":          func(b []byte) []byte { return make([]byte, len(b)) },
		"another file":   func(b []byte) []byte { return []byte(strings.Repeat("no registry\n", 5000)) },
		"a value's byte": func(b []byte) []byte { b[strings.Index(string(b), "x\x00x\x00x")] ^= 1; return b },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, FileName)
			bad := damage(sound(t, dir))
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			r := open2(t, dir)
			aside, cause := r.SetAside()
			if aside == "" || cause == nil || r.Volatile() != "" {
				t.Fatalf("set aside %q, %v, volatile %q", aside, cause, r.Volatile())
			}
			if got, _ := os.ReadFile(aside); !slices.Equal(got, bad) {
				t.Error("the file that was set aside is not the corrupt one")
			}
			if got, want := dump(r), dump(NewVolatile("")); got != want {
				t.Errorf("a new registry holds\n%s", got)
			}
			if err := r.Set(path(t, roce), DWord("roce_mode", 2)); err != nil {
				t.Error(err)
			}
			r.Close()
			r = open2(t, dir)
			if aside, cause := r.SetAside(); aside != "" {
				t.Errorf("the new file was set aside too: %v", cause)
			}
			if _, ok := r.Get(path(t, roce), "roce_mode"); !ok {
				t.Error("the new file forgot a value")
			}
		})
	}
}

// TestAnyDamageIsNoticedOrHarmless: no damage to a file makes Open panic, and any value that is read was written
// once.
func TestAnyDamageIsNoticedOrHarmless(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := open2(t, dir)
	written := map[string]bool{}
	for i := range 120 {
		v := String(fmt.Sprint("value ", i), strings.Repeat("x", i))
		written[fmt.Sprintf("%v %x", v.Name, v.Data)] = true
		if err := r.Set(path(t, roce), v); err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	good, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	kept := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		b := slices.Clone(good)
		for range rapid.IntRange(1, 3).Draw(t, "hits") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			copy(b[at:], rapid.SliceOfN(rapid.Byte(), 1, 16).Draw(t, "bytes"))
		}
		dir, err := os.MkdirTemp("", "registry")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if err := os.WriteFile(filepath.Join(dir, FileName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		k, _ := r.Key(Path{ControlSet + `\Services\mlx5\Parameters\Roce`})
		for _, v := range k.Values {
			if !written[fmt.Sprintf("%v %x", v.Name, v.Data)] {
				t.Fatalf("value %v %x was never written", v.Name, v.Data)
			}
		}
		aside, _ := r.SetAside()
		kept[aside == ""]++
		if err := r.Set(Path{ControlSet + `\Services\x`}, DWord("y", 1)); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("harmless %d, set aside %d", kept[true], kept[false])
}

func FuzzVerify(f *testing.F) {
	dir := f.TempDir()
	r := open2(f, dir)
	for i := range 40 {
		if err := r.Set(path(f, roce), String(fmt.Sprint("value ", i), "data")); err != nil {
			f.Fatal(err)
		}
	}
	r.Close()
	b, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := verify(b); err != nil && !errors.Is(err, errCorrupt) {
			t.Error(err)
		}
	})
}

func TestReadOnlyDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root writes everywhere; the test in a mount of its own covers it")
	}
	dir := t.TempDir()
	r := open2(t, dir)
	if err := r.Set(path(t, roce), DWord("roce_mode", 0)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if err := errors.Join(os.Chmod(filepath.Join(dir, FileName), 0o400), os.Chmod(dir, 0o500)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	checkVolatile(t, dir)
}

// checkVolatile opens the registry in a directory that cannot be written to and that holds roce_mode 0.
func checkVolatile(t *testing.T, dir string) {
	t.Helper()
	r := open2(t, dir)
	if r.Volatile() == "" {
		t.Fatal("a registry that cannot be written does not say so")
	}
	if v, ok := r.Get(path(t, roce), "roce_mode"); !ok || !cmp.Equal(v, DWord("roce_mode", 0)) {
		t.Errorf("the stored value reads %v (%v), want 0", v, ok)
	}
	if err := r.Set(path(t, roce), DWord("roce_mode", 2)); err != nil {
		t.Errorf("a change in memory: %v", err)
	}
}
