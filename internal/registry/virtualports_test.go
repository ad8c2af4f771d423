package registry

import (
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// TestVirtualPortsAreKept: virtual ports are kept in the registry's file, and removing one leaves the others.
func TestVirtualPortsAreKept(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.AddAdapter("Ethernet 1", catalogue.MLX4)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Apply(a.KeepFunction(Function{"red", true, []string{"link=down"}})...); err != nil {
		t.Fatal(err)
	}
	for _, v := range []VirtualPort{{"Ethernet 5", "ired", 0x22}, {"Ethernet 6", "imore", 0}} {
		if err := r.Apply(a.AddFunctionPort("red", v)...); err != nil {
			t.Fatal(err)
		}
	}
	want := []VirtualPort{{"Ethernet 3", "ipoib_1_1", 0}, {"Ethernet 4", "ipoib_1_2", 0x7123}}
	for _, v := range want {
		if err := r.Apply(a.AddVirtualPort(v)...); err != nil {
			t.Fatal(err)
		}
	}
	// Keys that others put there and that are no ports.
	if err := r.Set(a.VirtualPorts().Child("junk"), String("IName", "i")); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := r.VirtualPorts(a); !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if err := r.Apply(a.RemoveVirtualPort("Ethernet 3")); err != nil {
		t.Fatal(err)
	}
	if got := r.VirtualPorts(a); !slices.Equal(got, want[1:]) {
		t.Errorf("after the first was removed: %v, want %v", got, want[1:])
	}
	if err := r.Apply(a.RemoveVirtualPort("Ethernet 9")); err == nil {
		t.Error("a virtual port that does not exist was removed")
	}
	of := []VirtualPort{{"Ethernet 5", "ired", 0x22}, {"Ethernet 6", "imore", 0}}
	if got, names := r.FunctionPorts(a, "RED"), r.PortFunctions(a); !slices.Equal(got, of) || !slices.Equal(names, []string{"red"}) {
		t.Errorf("kept %v of the function, of %v; want %v", got, names, of)
	}
	if err := r.Apply(a.RemoveFunctionPort("red", "Ethernet 6")); err != nil {
		t.Fatal(err)
	}
	if got := r.FunctionPorts(a, "red"); !slices.Equal(got, of[:1]) {
		t.Errorf("after one was removed the function has %v", got)
	}
	if f, ok := r.Function(a, "red"); !ok || !f.Created {
		t.Errorf("the function itself is %+v, %v", f, ok)
	}
	if err := r.Apply(a.ForgetFunction("red")); err != nil {
		t.Fatal(err)
	}
	if got := r.FunctionPorts(a, "red"); got != nil {
		t.Errorf("without the function there are %v", got)
	}
}
