package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVLANsAreKept: VLAN interfaces are kept in the registry's file in the order in which they were made; keeping one replaces it,
// forgetting one leaves the others, and keys that describe none are skipped.
func TestVLANsAreKept(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	second := VLAN{GUID: "{AA}", Name: "second", Owner: "{1}", Number: 2, ID: 7, Priority: 3, Address: "192.0.2.1/24", TAP: "t.7"}
	first := VLAN{GUID: "{BB}", Name: "first", Owner: "{2}", Number: 1, ID: 4094}
	gone := VLAN{GUID: "{CC}", Name: "gone", Number: 3, ID: 1}
	for _, k := range []VLAN{{GUID: "{BB}", Name: "other", Number: 9, TAP: "x"}, second, gone, first} {
		if err := r.Apply(k.Keep()...); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Set(vlans.Child("{DD}"), DWord(valueVLANID, 1)); err != nil {
		t.Fatal(err)
	}
	if err := r.Apply(gone.Forget(), gone.Forget()); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if d := cmp.Diff([]VLAN{first, second}, r.VLANs()); d != "" {
		t.Error(d)
	}
}
