package fabric

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const netlist = "../../internal/fabric/topology/testdata/small.net"

// same are command lines whose output is the same on both fabrics once OpenSM has configured them. After a | stands a
// text: then only lines with that text are compared. Ports of ibsim have 32 GUIDs, ours have room for virtual functions besides.
const same = `
ibnetdiscover
ibnetdiscover -l
ibhosts
ibswitches
ibnodes
ibrouters
sminfo
ibaddr
ibaddr 3
ibaddr -L 5
ibstat | State: |Base lid|SM lid|LMC|Rate|GUID|Link layer|CA type|version
ibstat -l
smpquery nodeinfo 1
smpquery -D nodeinfo 0,1,7
smpquery nodedesc 3
smpquery guidinfo 1 | ^ *([0-9]|[12][0-9]|30): 
smpquery pkeys 1
smpquery -D pkeys 0,1 1
smpquery -D pkeys 0,1 0
smpquery -D switchinfo 0,1 | LinearFdb|RandomFdb|McastFdbCap|Def|LifeTime|StateChange|Filter|EnhancedPort0
smpquery portinfo 1 1 | GidPrefix|Lid:|SMLid|LocalPort|WidthActive|SpeedActive|State|LMC|SMSL|VLCap|OperVLs|PartEnforce|Filter|Violations
smpquery -D portinfo 0,1 0 | GidPrefix|Lid:|SMLid|LocalPort|State|LMC|SMSL|VLCap|OperVLs|Violations
smpquery -D portinfo 0,1 7 | GidPrefix|Lid:|SMLid|LocalPort|WidthActive|SpeedActive|State|LMC|SMSL|VLCap|OperVLs|PartEnforce|Filter|CapMask
smpquery -D portinfo 0,1 5 | LocalPort|WidthActive|SpeedActive|State
smpquery mlnxextportinfo 1 1
smpquery -D nodeinfo 0,1,5
smpdump 1 0x11
smpdump -D 0,1 0x10
ibroute 2
ibroute -D 0,1
ibroute 3
ibtracert 1 5
ibtracert 4 7
ibtracert -G 0x0002c90300001001 0x0002c90300001005
iblinkinfo | ==
perfquery 1 1 | Select|Error|Downed|Discards|Dropped|XmitWait
perfquery -a 2 | Select|Error|Downed|Discards|Dropped|XmitWait
perfquery -E 3 1
perfquery -D 3 1
perfquery --oprcvcounters 3 1
perfquery --flowctlcounters 3 1
perfquery --vloppackets 3 1
perfquery --vlxmitcounters 3 1
ibqueryerrors
ibidsverify
dump_lfts
saquery CPI
saquery -G hca3
`

// varies are what may differ between any two runs, and ibsim's remark on every port that it could be wider.
var varies = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`ibwarn: \[\d+\]`), "ibwarn: [PID]"},
	{regexp.MustCompile(`(?m)generated on .*$`), "generated on DATE"},
	{regexp.MustCompile(`activity count \d+`), "activity count N"},
	{regexp.MustCompile(`\((Could be 12X)? *\)`), "()"},
}

func compared(out, lines string) string {
	for _, v := range varies {
		out = v.what.ReplaceAllString(out, v.with)
	}
	if lines == "" {
		return out
	}
	pick := regexp.MustCompile(strings.TrimSpace(lines))
	var b strings.Builder
	for l := range strings.Lines(out) {
		if pick.MatchString(l) {
			b.WriteString(l)
		}
	}
	return b.String()
}

// The real OpenSM configures our fabric, and then the programs of infiniband-diags print what they print on the real
// ibsim, with the same exit status.
func TestPrintsWhatItPrintsOnIbsim(t *testing.T) {
	t.Parallel()
	a, b := theirs(t, netlist), ours(t, netlist)
	for _, g := range []*ground{a, b} {
		g.opensm("hca1")
	}
	for _, g := range []*ground{a, b} {
		g.log("hca1.log", "SUBNET UP")
	}
	n := 0
	for line := range strings.Lines(same) {
		words, lines, _ := strings.Cut(line, " | ")
		w := strings.Fields(words)
		if len(w) == 0 {
			continue
		}
		n++
		want, status := a.tool("hca2", w[0], w[1:]...)
		got, ends := b.tool("hca2", w[0], w[1:]...)
		if d := cmp.Diff(compared(want, lines), compared(got, lines)); d != "" || status != ends {
			t.Errorf("%s: status %d, on ibsim %d (-ibsim +ours)\n%s", strings.TrimSpace(words), ends, status, d)
		}
		if lines != "" && compared(want, lines) == "" {
			t.Errorf("%s: nothing is compared", words)
		}
	}
	if n < 40 {
		t.Errorf("%d command lines", n)
	}
}
