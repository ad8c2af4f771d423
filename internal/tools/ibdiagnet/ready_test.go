package ibdiagnet

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// An option value that is wrong on any fabric is refused as wrong usage, with the option's name and what it allows,
// even where no fabric answers.
func TestOptionsAreCheckedWithoutAFabric(t *testing.T) {
	for _, v := range []string{"SOFTVPI_FABRIC", "IBSIM_SOCKNAME", "IBSIM_SERVER_NAME", "SIM_HOST", topologyVariable, systemVariable,
		portVariable, deviceVariable} {
		t.Setenv(v, "")
	}
	for _, c := range []struct {
		run  func(context.Context, tool.Env) int
		args string
		want string
	}{
		{Main, "-lw 3x", `-lw is "3x"; allowed: 1x`},
		{Main, "-ls 7", `-ls is "7"; allowed: 2.5`},
		{Main, "-i 9", `the adapter's index is "9"; allowed: 1`},
		{Main, "-p 0", `the port is "0"; allowed: a number from 1 to 254`},
		{Main, "-t /nosuch", `the topology file cannot be read`},
		{Path, "", `0 ways to address the ends are given`},
		{Path, "-l 0", `the LID is "0"; allowed: a number from 1 to 49151`},
		{Path, "-l 1,2,3", `the ends are "1,2,3"; allowed: a destination`},
		{Path, "-n host/P0", `the port is "0"; allowed: a number from 1 to 254`},
		{Path, "-d 1,999", `the directed route is "0,1,999"`},
		{Path, "-l 1 -p 255", `the port is "255"; allowed`},
	} {
		var out, errs bytes.Buffer
		env := tool.Env{Name: "tool", Args: strings.Fields(c.args), Stdout: &out, Stderr: &errs}
		if status := c.run(t.Context(), env); status != tool.Usage || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%q: status %d, %q %q; want %d and %q", c.args, status, out.String(), errs.String(), tool.Usage, c.want)
		}
	}
}
