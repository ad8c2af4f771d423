package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVirtualSwitchesAreKept: virtual switches are kept in the registry's file with their adapters; keeping a switch again leaves those,
// forgetting one takes them along, and keys that describe none are skipped.
func TestVirtualSwitchesAreKept(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(c ...Change) {
		t.Helper()
		if err := r.Apply(c...); err != nil {
			t.Fatal(err)
		}
	}
	s, gone := VirtualSwitch{Name: "a switch", Adapter: "Ethernet 1"}, VirtualSwitch{Name: "gone", Adapter: "Ethernet 2"}
	red := SwitchAdapter{Function: "red", Settings: []string{"machine=vm 1", "name=Network Adapter"}}
	blue := SwitchAdapter{Function: "blue", Configured: true}
	for _, x := range []*VirtualSwitch{&s, &gone} {
		apply(x.Keep()...)
		apply(x.KeepAdapter(red)...)
		apply(x.KeepAdapter(SwitchAdapter{Function: "blue", Settings: []string{"rdma=off"}})...)
		apply(x.KeepAdapter(SwitchAdapter{Function: "green"})...)
	}
	s.IOV, s.PacketDirect, s.VFP, s.Configured = true, true, true, true
	apply(s.Keep()...)
	apply(s.KeepAdapter(blue)...)
	apply(numberSet(virtualSwitches.Child("junk"), valueIOV))
	for range 2 {
		apply(gone.Forget())
		apply(s.ForgetAdapter("Green"))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s.Adapters = []SwitchAdapter{blue, red}
	if d := cmp.Diff([]VirtualSwitch{s}, r.VirtualSwitches()); d != "" {
		t.Error(d)
	}
}

// numberSet sets a number to 1.
func numberSet(key Path, name string) Change {
	return Change{Kind: SetValue, Key: key, Value: DWord(name, 1)}
}
