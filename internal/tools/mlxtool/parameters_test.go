package mlxtool

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// TestModifyDriverParams: parameters inside the driver are changed by name, in any letter case, all or none (WinOF 5.50, 5.5.3.9); one
// that switches nothing says so.
func TestModifyDriverParams(t *testing.T) {
	g := start(t)
	current := func(name string) any {
		for _, row := range g.tables("show", "driverparams", "right")[0].Rows {
			if row["parameter"] == name {
				return row["current"]
			}
		}
		return nil
	}
	for _, x := range []struct {
		args     string
		dpc, rfd float64
	}{
		{"MaxNumberOfPacketsToIndicateDPC 32", 32, 1}, {"nicminrfd 0x10 MaxNumberOfPacketsToIndicateDPC 64", 64, 16},
		{"NicMinRfd default", 64, 1}, {"NicMinRfd default MaxNumberOfPacketsToIndicateDPC default", 128, 1},
	} {
		g.ok(append([]string{"modify", "driverparams", "right"}, strings.Fields(x.args)...)...)
		if dpc, rfd := current("MaxNumberOfPacketsToIndicateDPC"), current("NicMinRfd"); dpc != x.dpc || rfd != x.rfd {
			t.Errorf("%s: %v and %v, want %v and %v", x.args, dpc, rfd, x.dpc, x.rfd)
		}
	}
	for args, want := range map[string]string{
		"":                             "want pairs of a parameter and its value",
		"NicMinRfd":                    "want pairs of a parameter and its value",
		"NicMinRfd 0":                  "NicMinRfd is 0; allowed: 1 to 4096 descriptors, or default",
		"NicMinRfd few":                `NicMinRfd is "few"; allowed: 1 to 4096 descriptors, or default`,
		"NicMinRfd 8 SRIOV_EN 1":       `"SRIOV_EN" is no parameter; there are MaxNumberOfPacketsToIndicateDPC,`,
		"NicMinRfd 8 QueryStatsMsec 1": "QueryStatsMsec is 1; allowed: 10 to 60000 ms",
	} {
		status, _, stderr := g.call(append([]string{"modify", "driverparams", "right"}, strings.Fields(args)...)...)
		if status != tool.Usage || !strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, %s; want %q", args, status, stderr, want)
		}
	}
	if rfd := current("NicMinRfd"); rfd != 1.0 {
		t.Errorf("NicMinRfd is %v after what was refused", rfd)
	}
	if status, _, stderr := g.call("modify", "driverparams", "right", "TrackNBLReturnLatency", "1"); status != tool.Success ||
		!strings.Contains(stderr, "TrackNBLReturnLatency switches nothing") {
		t.Errorf("status %d, %s", status, stderr)
	}
	if status, _, _ := g.call("modify", "driverparams", "left", "NicMinRfd", "8"); status != tool.Unsupported {
		t.Errorf("of mlx5: status %d", status)
	}
}
