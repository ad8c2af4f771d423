package registry

import (
	"errors"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// keyChange returns a change that sets the value of a key or, with an empty text, deletes it.
func keyChange(t *testing.T, a Adapter, name, text string) Change {
	t.Helper()
	keys := catalogue.LookupFor(name, a.Target())
	if len(keys) == 0 {
		t.Fatalf("no key %s", name)
	}
	k := keys[0]
	if text == "" {
		return Change{Kind: DeleteValue, Key: a.Place(k), Value: Value{Name: k.Name}}
	}
	v, err := k.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return Change{Kind: SetValue, Key: a.Place(k), Value: FromCatalogue(k, v)}
}

// TestCheckConflicts: two keys that exclude each other are never both set, in whichever order and by whatever change,
// including a deletion that restores a default (WinOF 5.50, 4.6.6.1).
func TestCheckConflicts(t *testing.T) {
	_, _, mlx4 := twoAdapters(t)
	for _, c := range []struct {
		stored, changes string // key=value, in order
		wrong           string
	}{
		{"", "PerPriRxPause=3", "PerPriRxPause cannot be set while RxPause is"}, // 1 by default
		{"", "RxPause=0 PerPriRxPause=3", ""},
		{"", "PerPriRxPause=3 RxPause=0", ""}, // both at once, in whichever order
		{"RxPause=0 PerPriRxPause=3", "RxPause=1", "RxPause cannot be set while PerPriRxPause is"},
		{"RxPause=0 PerPriRxPause=3", "RxPause=", "RxPause cannot be set while PerPriRxPause is"},
		{"RxPause=0 PerPriRxPause=3", "PerPriRxPause= RxPause=1", ""},
		{"RxPause=0 PerPriRxPause=3", "PerPriRxPause=7", ""},
		{"RxPause=1 PerPriRxPause=3", "*ReceiveBuffers=1024", ""}, // a conflict from before does not refuse an unrelated change
		{"", "PerPriTxPause=1", "PerPriTxPause cannot be set while TxPause is"},
	} {
		r, _, _ := twoAdapters(t)
		parse := func(list string) (out []Change) {
			for s := range strings.FieldsSeq(list) {
				name, text, _ := strings.Cut(s, "=")
				out = append(out, keyChange(t, mlx4, name, text))
			}
			return out
		}
		if err := r.Apply(parse(c.stored)...); err != nil {
			t.Fatal(err)
		}
		_, err := r.Check(parse(c.changes))
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%q over %q: %v, want %q", c.changes, c.stored, err, c.wrong)
		}
		var e *changeError
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%q over %q: an error of type %T", c.changes, c.stored, err)
		}
	}
}

// TestConflictThatIsStored: if both are stored nevertheless, the one that is 0 by default counts as not set.
func TestConflictThatIsStored(t *testing.T) {
	r, _, mlx4 := twoAdapters(t)
	if err := r.Apply(keyChange(t, mlx4, "PerPriRxPause", "3")); err != nil {
		t.Fatal(err)
	}
	s := number(t, r, mlx4, "PerPriRxPause")
	var e *catalogue.ConflictError
	if s.Value.Number != 0 || s.Stored || !errors.As(s.Problem, &e) {
		t.Errorf("PerPriRxPause is %+v, want 0 with a conflict", s)
	}
	if s := number(t, r, mlx4, "RxPause"); s.Value.Number != 1 || s.Problem != nil {
		t.Errorf("RxPause is %+v, want 1 without a problem", s)
	}
}

// TestCheckBounds: a value beyond what the machine has is refused, and if it is stored the default is used. Beyond a
// soft bound the change is accepted with a notice of the value that is used.
func TestCheckBounds(t *testing.T) {
	r, _, mlx4 := twoAdapters(t)
	r.SetProcessors(6)
	check := func(name, text string) ([]Notice, error) { return r.Check([]Change{keyChange(t, mlx4, name, text)}) }
	for _, c := range []struct{ name, within, beyond, most string }{
		{"RssBaseCpu", "6", "7", "the number of processors, which is 6"},
		{"TxInterruptProcessor", "6", "7", "the number of processors"},
		{"*MaxRSSProcessors", "8", "9", "the number of processors"}, // 8 is the default
		{"MaximumWorkingThreads", "8", "9", "the number of receive rings, which is 8"},
	} {
		if _, err := check(c.name, c.within); err != nil {
			t.Errorf("%s=%s was refused: %v", c.name, c.within, err)
		}
		var e *catalogue.ValueError
		if _, err := check(c.name, c.beyond); !errors.As(err, &e) || !strings.Contains(err.Error(), c.most) {
			t.Errorf("%s=%s: error %v, want one with %q", c.name, c.beyond, err, c.most)
		}
	}
	if _, err := check("TxInterruptProcessor", "-1"); err != nil {
		t.Errorf("-1, for automatic, was refused: %v", err)
	}
	if err := r.Apply(keyChange(t, mlx4, "RssBaseCpu", "5")); err != nil {
		t.Fatal(err)
	}
	if s := number(t, r, mlx4, "RssBaseCpu"); s.Value.Number != 5 || s.Problem != nil {
		t.Errorf("RssBaseCpu is %+v, want 5", s)
	}
	r.SetProcessors(4) // as if the registry had moved to a smaller machine
	if s := number(t, r, mlx4, "RssBaseCpu"); s.Value.Number != 1 || s.Stored || s.Problem == nil {
		t.Errorf("on a smaller machine RssBaseCpu is %+v, want its default and a problem", s)
	}
	r.SetLineRate(func(a Adapter) uint64 { return map[string]uint64{"mlx5": 1000}[a.Generation.Driver()] })
	_, mlx5, _ := twoAdapters(t)
	for text, want := range map[string]int{"1000": 0, "1001": 1} {
		n, err := r.Check([]Change{keyChange(t, mlx5, "DcqcnRpgAiRate", text)})
		if err != nil || len(n) != want || want > 0 && !strings.Contains(n[0].Text, "taken as that: 1000") {
			t.Errorf("%s on a link of 1000 Mbit/s: notices %v, error %v", text, n, err)
		}
	}
	soft := func(text string) string {
		n, err := check("MaxVFPort1", text)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range n {
			if strings.Contains(n.Text, "taken as") {
				return n.Text
			}
		}
		return ""
	}
	if n := soft("17"); n != "is more than the NUM_OF_VFS, and taken as that: 16" {
		t.Errorf("17 of 16 virtual functions: notice %q, want that it counts as 16", n)
	}
	p, _ := catalogue.LookupParameter("NUM_OF_VFS")
	most := uint64(20)
	c, err := mlx4.Configure(p, &most)
	if err == nil {
		err = r.Apply(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := soft("17"); n != "" {
		t.Errorf("17 of 20 virtual functions: notice %q, want none", n)
	}
}
