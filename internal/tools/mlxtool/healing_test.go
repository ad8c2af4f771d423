package mlxtool

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver"
)

// TestSelfHealing: show selfhealing port shows the resets and the sensors of one interface or of all, with what the masks say (WinOF
// 5.50, 5.5.3.7.1 and 4.10.1.1.1.1).
func TestSelfHealing(t *testing.T) {
	g := start(t)
	mask := "0xfffffff7"
	if _, err := g.driver.Set("left", "SHMPResetActiveSensorsMask", &mask); err != nil {
		t.Fatal(err)
	}
	all := g.tables("show", "selfhealing", "port")
	if len(all) != 4 {
		t.Fatalf("%d tables, want two of each interface", len(all))
	}
	one := g.tables("show", "selfhealing", "port", "left")
	if len(one) != 2 || len(one[0].Rows) != 1 || len(one[1].Rows) != 9 {
		t.Fatalf("%+v", one)
	}
	if r := one[0].Rows[0]; r["state"] != "Operational" || r["resets_count"] != 0.0 {
		t.Errorf("%v", r)
	}
	reset := map[string]string{"0x00000008": "Disabled", "0x00020000": "Enabled"}
	for _, r := range one[1].Rows {
		if want, ok := reset[r["mask"].(string)]; ok && r["reset"] != want || r["dump"] != "Disabled" || r["state"] != "OK" || r["count"] != 0.0 {
			t.Errorf("%v", r)
		}
	}
	if text := g.ok("show", "selfhealing", "port", "right"); !strings.Contains(text, "Send completion error") {
		t.Error(text)
	}
	if err := g.driver.SetAdapter(driver.AdapterRequest{Adapter: "left"}); err != nil {
		t.Fatal(err)
	}
	if r := g.tables("show", "selfhealing", "port", "left")[0].Rows[0]; r["state"] != "Disabled" {
		t.Errorf("%v", r)
	}
}
