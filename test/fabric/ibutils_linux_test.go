package fabric

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ibutilsOnly matches the parts of an ibutils report that ours does not have: the files loaded, the running count,
// requests of a vendor's class with the errors that follow (no agent here answers them), and the run time.
var ibutilsOnly = regexp.MustCompile(`(?m)^Loading .*\n|^-E- Could not get General Info:\n.*failed 4 consecutive times\.\n|Run time was \d+ seconds|^ *General Devices Info Report.*\n`)

// The ibdiagnet of ibutils, unmodified and with our library, sees the same as ours on our fabric: the report has the
// same text, and the files of links, tables, partitions and managers have the same lines. With -r it crashes in its
// own code on any fabric, as does ibdiagpath.
func TestIbdiagnetOfIbutils(t *testing.T) {
	t.Parallel()
	d := newDatagrams(t, "ibdiagnet")
	d.manage()
	report := func(out string) string {
		out = strings.ReplaceAll(out, "\r", "")
		if i := strings.LastIndex(out, "-I- Discovering ..."); i >= 0 { // the count overwrites itself
			j := strings.Index(out, "-I- Discovering ...")
			out = out[:j] + out[i:]
		}
		return strings.TrimSpace(strings.ReplaceAll(ibutilsOnly.ReplaceAllString(out, ""), "theirs/", "ours/"))
	}
	theirs := report(d.output("hca2", "ibdiagnet", "-o", "theirs"))
	ours := report(d.ibdiagnet("hca2", "-o", filepath.Join(d.dir, "ours")))
	ours = strings.ReplaceAll(ours, filepath.Join(d.dir, "ours"), "ours")
	if theirs != ours {
		t.Errorf("ibutils says\n%q\nours\n%q", theirs, ours)
	}
	for _, name := range []string{"lst", "fdbs", "mcfdbs", "pkey", "sm"} {
		if a, b := d.lines("theirs", name), d.lines("ours", name); !slices.Equal(a, b) {
			t.Errorf("ibdiagnet.%s of ibutils:\n%s\nof ours:\n%s", name, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
}

// ibdiagnet runs our ibdiagnet at a node.
func (d *datagrams) ibdiagnet(node string, args ...string) string {
	d.t.Helper()
	out, errs, status := d.own(nil, node, "ibdiagnet", args...)
	if status != 0 {
		d.t.Errorf("ibdiagnet: status %d\n%s%s", status, out, errs)
	}
	return out
}

// twoEnds matches the two ends of a link, of which either may come first.
var twoEnds = regexp.MustCompile(`^(\{ .*? PN:\d+ \}) (\{ .* PN:\d+ \})(.*)$`)

// lines returns the lines of a file of ibdiagnet in alphabetical order, and with the ends of each link in order, too.
func (d *datagrams) lines(dir, name string) []string {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.dir, dir, "ibdiagnet."+name))
	if err != nil {
		d.t.Fatal(err)
	}
	var list []string
	for l := range strings.Lines(string(b)) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		if m := twoEnds.FindStringSubmatch(l); name == "lst" && m != nil && m[1] > m[2] {
			l = m[2] + " " + m[1] + m[3]
		}
		list = append(list, l)
	}
	slices.Sort(list)
	return list
}
