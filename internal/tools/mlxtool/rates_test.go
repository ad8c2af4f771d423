package mlxtool

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// TestModifyTCBW: classes are limited in units of 100 Mbit/s or 1 Gbit/s, rounded down, or up to the least (WinOF 5.50, 5.5.4.1);
// other classes keep their limits, and what is wrong changes nothing.
func TestModifyTCBW(t *testing.T) {
	g := start(t)
	limit := func() string {
		for _, row := range g.tables(append([]string{"show", "qos"}, g.where("left")...)...)[0].Rows {
			if row["port"] == float64(1) && strings.HasPrefix(row["setting"].(string), "Bandwidth Limits") {
				return row["value"].(string)
			}
		}
		return ""
	}
	name := "left"
	for _, x := range []struct{ args, want string }{
		{"3 100 5 300", "3:100,5:300"}, {"3 199", "3:100,5:300"}, {"3 1", "3:100,5:300"}, {"3 25599", "3:25500,5:300"}, {"3 25999", "3:25000,5:300"},
		{"3 0", "5:300"}, {"5 0 1 700", "1:700"}, {"1 0", "none"},
	} {
		g.ok(append([]string{"modify", "tc-bw", name}, strings.Fields(x.args)...)...)
		if got := limit(); got != x.want {
			t.Errorf("%s: %q, want %q", x.args, got, x.want)
		}
	}
	for _, args := range []string{"", "3", "8 100", "x 100", "3 fast", "3 100 4", "3 -1"} {
		if status, _, _ := g.call(append([]string{"modify", "tc-bw", name}, strings.Fields(args)...)...); status != tool.Usage {
			t.Errorf("%q: status %d", args, status)
		}
	}
}
