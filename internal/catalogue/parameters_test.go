package catalogue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParametersAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Parameters() {
		check := func(ok bool, format string, args ...any) {
			t.Helper()
			if !ok {
				t.Errorf("%s: %s", p.Name, fmt.Sprintf(format, args...))
			}
		}
		name := strings.ToLower(p.Name)
		check(!seen[name], "declared twice")
		seen[name] = true
		check(p.Tool == ConfigTool && p.Effect == AtRestart || p.Tool == DriverTool && p.Effect == AtOnce, "tool %q, effect %d", p.Tool,
			p.Effect)
		check(p.Generations&Both != 0, "no generation")
		check(p.Scope == perAdapter || p.Scope == perPort, "scope %d", p.Scope)
		check(len(p.Description) >= 20 && len(p.Description) <= 200 && strings.HasSuffix(p.Description, "."), "description %q",
			p.Description)
		check((len(p.Choices) > 0) != (p.Max > 0), "choices or limits")
		check(p.Min <= p.Max && p.MostMLX4 <= p.Max, "limits %d, %d, %d", p.Min, p.MostMLX4, p.Max)
		checkSources(t, p.Name, p.Sources)
		for _, g := range []Generation{MLX5, MLX4} {
			if p.Generations&g != 0 {
				check(p.Validate(p.Default.Number, g) == nil, "default %d on %d", p.Default.Number, g)
			}
		}
	}
}

// The settings in the manuals' examples are valid, and the parameters stand in the order of mlxconfig's sample
// output.
func TestParametersOfTheManuals(t *testing.T) {
	for _, s := range []string{
		"SRIOV_EN=1", "NUM_OF_VFS=16", "NUM_OF_VFS=127", "LINK_TYPE_P1=2", "LINK_TYPE_P2=1", "link_type_p2=0x2",
		"LLDP_NB_RX_MODE_P1=2", "LLDP_NB_TX_MODE_P2=2", "LLDP_NB_DCBX_P1=1", "SRIOV_IB_ROUTING_MODE_P2=1",
	} {
		name, value, _ := strings.Cut(s, "=")
		p, ok := LookupParameter(name)
		if !ok {
			t.Errorf("no %s", name)
			continue
		}
		if _, err := p.Parse(value, MLX5); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	var names []string
	for _, p := range ParametersFor(ConfigTool, MLX5) {
		names = append(names, p.Name)
	}
	last := -1
	for _, n := range []string{"SRIOV_EN", "NUM_OF_VFS", "WOL_MAGIC_EN_P2", "LINK_TYPE_P1", "LINK_TYPE_P2"} {
		i := slices.Index(names, n)
		if i <= last {
			t.Errorf("%s is number %d in %v, want it after the one before it in the sample", n, i, names)
		}
		last = i
	}
}

func TestParameterErrors(t *testing.T) {
	for _, c := range []struct {
		name, value string
		g           Generation
		want        string
	}{
		{"NUM_OF_VFS", "128", MLX5, "NUM_OF_VFS is 128; allowed: 0 to 127 virtual functions"},
		{"NUM_OF_VFS", "127", MLX4, "NUM_OF_VFS is 127; allowed: 0 to 126 virtual functions"},
		{"LINK_TYPE_P1", "4", MLX5, "LINK_TYPE_P1 is 4; allowed: 1 (IB), 2 (ETH), 3 (VPI)"},
		{"SRIOV_EN", "yes", MLX5, `SRIOV_EN is "yes"; allowed: 0 (False), 1 (True)`},
	} {
		p, _ := LookupParameter(c.name)
		_, err := p.Parse(c.value, c.g)
		var wrong *ValueError
		if !errors.As(err, &wrong) || err.Error() != c.want {
			t.Errorf("%s=%s: %v, want %s", c.name, c.value, err, c.want)
		}
	}
	if _, ok := LookupParameter("nothing"); ok {
		t.Error("LookupParameter finds \"nothing\", which is no parameter")
	}
}
