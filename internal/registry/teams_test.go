package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTeamsAreKept: teams are kept in the registry's file in the order in which they were made; keeping one replaces it, forgetting one
// leaves the others, and keys that describe none are skipped.
func TestTeamsAreKept(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	second := Team{GUID: "{AA}", Name: "second", Number: 2, Type: 1, IPoIB: true}
	first := Team{GUID: "{BB}", Name: "first", Number: 1, Type: 6, NoFallBack: true, Members: []string{"{1}", "{2}"}, Primary: "{2}", GivesMAC: "{1}",
		Carrier: "{3}", MAC: "02:00:00:00:00:01"}
	gone := Team{GUID: "{CC}", Name: "gone", Number: 3, Type: 2}
	for _, k := range []Team{{GUID: "{BB}", Name: "other", Number: 9, Type: 1, Members: []string{"{3}"}, Primary: "{3}"}, second, gone, first} {
		if err := r.Apply(k.Keep()...); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Set(teams.Child("{DD}"), DWord(valueTeamType, 1)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Apply(gone.Forget()); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if d := cmp.Diff([]Team{first, second}, r.Teams()); d != "" {
		t.Error(d)
	}
}
