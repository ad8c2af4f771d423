package captures

import "testing"

func TestRecordingsAreThere(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 21 {
		t.Errorf("%d recordings, want 21", len(all))
	}
	for _, r := range all {
		if len(r.Frames) == 0 {
			t.Errorf("%s is empty", r.Name)
		}
	}
}
