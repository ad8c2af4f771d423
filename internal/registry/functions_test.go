package registry

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// TestFunctionsAreKept: what is set of virtual functions is kept in the registry's file, each by its name in whatever case; keeping one
// again replaces it, and forgetting one leaves the others.
func TestFunctionsAreKept(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.AddAdapter("Ethernet 1", catalogue.MLX5)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []Function{
		{"red", true, []string{"mac=02:00:00:00:00:01", "vlan=7"}},
		{"blue", false, nil},
		{"red", true, []string{"vlan=8"}},
	} {
		if err := r.Apply(a.KeepFunction(f)...); err != nil {
			t.Fatal(err)
		}
	}
	// Keys that others put there and that are no virtual functions.
	if err := r.Set(a.Functions().Child("junk"), DWord("Created", 1)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, want := fmt.Sprint(r.Functions(a)), "[{blue false []} {red true [vlan=8]}]"; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	if f, ok := r.Function(a, "RED"); !ok || f.Name != "red" {
		t.Errorf("by another spelling: %+v, %v", f, ok)
	}
	for range 2 { // forgetting what is not kept is no error
		if err := r.Apply(a.ForgetFunction("Red")); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fmt.Sprint(r.Functions(a)), "[{blue false []}]"; got != want {
		t.Errorf("after one was forgotten: %s, want %s", got, want)
	}
}
