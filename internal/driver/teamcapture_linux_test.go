package driver

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestTeam_Captured: a capture of the adapter that carries a team goes on while members come and go; one of an adapter whose wire the team
// gets ends with the reason, and none begins there.
func TestTeam_Captured(t *testing.T) {
	d := start(t, parsed(t, threeAtASwitch...))
	defer stop(t, d)
	dir, ids := t.TempDir(), map[string]string{}
	for _, name := range []string{"a", "b"} {
		c, err := d.CaptureToFile(CaptureRequest{Adapter: name}, filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = c.ID
	}
	status := func(name string) (s api.CaptureStatus) {
		t.Helper()
		for _, s := range d.Captures() {
			if s.ID == ids[name] {
				return s
			}
		}
		t.Fatalf("there is no capture of %s", name)
		return s
	}
	mustTeam(t, d, "AFT", "a", "b")
	await.Eventually(t, "the member's capture ends", func() bool { return !status("b").Running && status("b").Problem != "" })
	if s := status("b"); !strings.Contains(s.Problem, `in team "T"`) || !strings.Contains(s.Problem, `"a", which carries the team`) {
		t.Errorf("the member's capture says %q", s.Problem)
	}
	before := status("a").Packets
	across(t, end{d, 0}, end{d, 2})
	if s := status("a"); !s.Running || s.Packets < before+10 {
		t.Errorf("the carrier's capture is %+v, and had %d packets", s, before)
	}
	var wrong *api.FieldError
	if _, err := d.CaptureToFile(CaptureRequest{Adapter: "b"}, filepath.Join(dir, "c")); !errors.As(err, &wrong) || wrong.Field != "adapter" {
		t.Errorf("a capture of a member: %v", err)
	}
	for _, id := range ids {
		if _, err := d.EndCapture(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}
