package ibdiag

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// offline runs a tool that has options of every kind and needs no fabric. It returns the arguments and option values
// that the tool was given, its exit status and its output.
func offline(t *testing.T, args ...string) (got []string, status int, out, errs string) {
	t.Helper()
	var list bool
	var depth uint8
	var file string
	var o, e bytes.Buffer
	status = Run(context.Background(), tool.Env{Name: "ibthing", Args: args, Stdout: &o, Stderr: &e}, Tool{
		Arguments: "<a> <b>", Examples: []string{"1 2"},
		Options: []Option{Flag(&list, "list", 'l', "list"), Number(&depth, "depth", 'p', "<n>", "how deep", 1, 9),
			Text(&file, "lift", 0, "<file>", "file"), WithNames},
		Without: "K", Least: 1, Most: 3, Offline: true,
		Work: func(s *Session, words []string) error {
			got = append(got, words...)
			if list {
				got = append(got, "list")
			}
			if depth != 0 {
				got = append(got, "depth", string('0'+depth))
			}
			if file != "" {
				got = append(got, "file", file)
			}
			if s.Timing.Timeout != time.Second {
				got = append(got, s.Timing.Timeout.String())
			}
			if s.Kind == ByGUID {
				got = append(got, "GUID")
			}
			switch words[0] {
			case "fail":
				return Failf("that\nbroke")
			case "end":
				return Ended(3)
			case "other":
				return errors.New("something else")
			}
			return nil
		},
	})
	return got, status, o.String(), e.String()
}

// Options are read as getopt_long(3) reads them.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"a", []string{"a"}},
		{"-l a b", []string{"a", "b", "list"}},
		{"a -lp3 b", []string{"a", "b", "list", "depth", "3"}},
		{"a -lp 0x4", []string{"a", "list", "depth", "4"}},
		{"--depth=5 a", []string{"a", "depth", "5"}},
		{"--dep 5 a", []string{"a", "depth", "5"}},
		{"a --list", []string{"a", "list"}},
		{"a --lift x", []string{"a", "file", "x"}},
		{"a -- -l", []string{"a", "-l"}},
		{"a -", []string{"a", "-"}},
		{"a -t 250 -G", []string{"a", "250ms", "GUID"}},
	} {
		got, status, _, errs := offline(t, strings.Fields(c.args)...)
		if d := cmp.Diff(c.want, got); d != "" || status != 0 {
			t.Errorf("%s: status %d %s\n%s", c.args, status, errs, d)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	for _, args := range []string{
		"", "a b c d", "a -x", "a -K", "a --li", "a --nothing", "a --list=1", "a -p", "a -p 0", "a -p 10", "a -p x", "a --depth", "a -t 0",
		"a -t 9999999999", "a -P 300",
	} {
		got, status, out, errs := offline(t, strings.Fields(args)...)
		if status != tool.Usage || !strings.Contains(errs, "allowed: ") || strings.Count(errs, "\n") != 1 || out != "" || got != nil {
			t.Errorf("%q: status %d, %q, %q; want wrong usage and one line with \"allowed: \"", args, status, out, errs)
		}
	}
}

func TestEnds(t *testing.T) {
	for word, want := range map[string]struct {
		status    int
		out, errs string
	}{
		"fine":  {0, "", ""},
		"fail":  {255, "ibthing: iberror: failed: that broke\n", ""},
		"end":   {3, "", ""},
		"other": {255, "", "ibthing: something else\n"},
	} {
		if _, status, out, errs := offline(t, word); status != want.status || out != want.out || errs != want.errs {
			t.Errorf("%s: status %d, %q, %q; want %+v", word, status, out, errs, want)
		}
	}
	if _, status, out, _ := offline(t, "-h"); status != 0 || !strings.Contains(out, "usage: ibthing [options] <a> <b>") ||
		!strings.Contains(out, "--depth, -p <n>") {
		t.Errorf("help: status %d, want 0 with the usage and the options:\n%s", status, out)
	}
	if _, status, out, _ := offline(t, "-V"); status != 0 || !strings.HasPrefix(out, "ibthing BUILD VERSION: ") {
		t.Errorf("version: status %d, %s", status, out)
	}
}

func TestSettingsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "conf")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# a comment\n\ntimeout=50\nMLX_EPI=false\nnonsense\n")
	if got, status, _, errs := offline(t, "a", "-z", file); status != 0 || !slices.Contains(got, "50ms") {
		t.Errorf("read %v, status %d, %s; want the file's timeout of 50ms", got, status, errs)
	}
	write("timeout=x\n")
	if _, status, _, errs := offline(t, "a", "--config", file); status != tool.Usage || !strings.Contains(errs, "timeout") {
		t.Errorf("a file with timeout=x: status %d, %s; want wrong usage that names timeout", status, errs)
	}
}

func TestRoutes(t *testing.T) {
	long := "0" + strings.Repeat(",1", mad.MaxHops)
	for text, want := range map[string]string{"0": "0", "0,1,7": "0,1,7", "0,254": "0,254", long: long} {
		p, err := ParsePath(text)
		if err != nil || PathString(p) != want {
			t.Errorf("%q is read as %v, %v; want %s", text, p, err, want)
		}
	}
	for _, text := range []string{"", "1", "0,", "0,x", "0,255", "0,-1", long + ",1"} {
		if p, err := ParsePath(text); err == nil {
			t.Errorf("%q is read as %v, want an error", text, p)
		}
	}
	lid, own := LIDRoute(6), ib.LID(4)
	beyond, err := lid.Extend(12, own)
	if err != nil || beyond.String() != "Lid 6 DR path slid 4; dlid 65535; 0,12" || lid.String() != "Lid 6" {
		t.Errorf("got %s and %s, %v; want LID 6, and a direct path from LID 6 by port 12", lid, beyond, err)
	}
	direct := DirectRoute(1)
	next, err := direct.Extend(7, own)
	if err != nil || next.String() != "DR path slid 65535; dlid 65535; 0,1,7" || direct.String() != "DR path slid 65535; dlid 65535; 0,1" {
		t.Errorf("got %s from %s, %v; want the path 0,1 to be continued by port 7", direct, next, err)
	}
	for next, err = direct, nil; err == nil; next, err = next.Extend(1, own) {
		if len(next.Path) > mad.MaxHops+1 {
			t.Fatalf("a path of %d hops, want at most %d", len(next.Path)-1, mad.MaxHops)
		}
	}
	m := mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0)
	to, err := beyond.Direct(&m)
	if err != nil || to != (umad.Address{LID: 6}) || m.DrSLID != own || m.DrDLID != ib.LIDPermissive || m.HopCount() != 1 ||
		m.InitialPath[1] != 12 {
		t.Errorf("sent to %v, %v: %+v; want an SMP to LID 6 with a direct path by port 12", to, err, m)
	}
}

func TestNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "names")
	if err := os.WriteFile(file, []byte("# names\n0x10 \"core 1\" # the first\n\n0x11\t\"core 2\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := readNames(file)
	if err != nil || names.Of(0x10, "x") != "core 1" || names.Of(0x11, "x") != "core 2" || names.Of(0x12, "a\x1b[2Jb\n") != "a [2Jb " {
		t.Errorf("read %v, %v; want core 1 and core 2, and other nodes' own names without control characters", names, err)
	}
	for _, line := range []string{"x \"y\"", "0x10 y", "0x10 \"y", "0x10"} {
		if err := os.WriteFile(file, []byte("0x1 \"a\"\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readNames(file); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v, want an error that names line 2", line, err)
		}
	}
	if got := Printable(strings.Repeat("x", 64)); len(got) != 63 {
		t.Errorf("%d characters of a description, want 63", len(got))
	}
}

// Every value that a node may answer has a text, even one that the specification does not define.
func TestValues(t *testing.T) {
	for _, c := range [][2]string{
		{widths(3), "1X or 4X"}, {widths(0), "undefined (0)"}, {widths(0x23), "1X or 4X or undefined (35)"},
		{widthsSupported(2), "4X (IBA extension)"},
		{widthsSupported(31), "1X or 4X or 8X or 12X or 2X"}, {widthText(2), "4X"}, {widthText(3), "undefined (3)"},
		{speeds(7), "2.5 Gbps or 5.0 Gbps or 10.0 Gbps"}, {speeds(6), "5.0 Gbps or 10.0 Gbps (IBA extension)"},
		{speeds(15), "2.5 Gbps or 5.0 Gbps or 10.0 Gbps or undefined (15)"},
		{speedText(0), "Extended speed"}, {speedText(3), "undefined (3)"}, {speedExtText(0), "No Extended Speed"},
		{speedExtText(2), "25.78125 Gbps"}, {speedExtText(3), "undefined (3)"},
		{speedsExt(3), "14.0625 Gbps or 25.78125 Gbps"}, {speedsExtEnabled(30), "Extended link speeds disabled"},
		{speedsExt2(1), "212.5 Gbps"},
		{lanes(4, "?"), "VL0-7"}, {lanes(5, "?"), "VL0-14"}, {lanes(9, "?"), "?(9)"}, {lanes(0, "No change"), "No change"},
		{MTU(5), "4096"}, {MTU(6), "?(6)"},
		{portState(4), "Active"}, {portState(9), "?(9)"}, {physicalState(5), "LinkUp"}, {physicalState(9), "?(9)"},
		{downState(2), "Polling"}, {downState(3), "?(3)"},
		{NodeType(mad.NodeSwitch), "Switch"}, {NodeType(9), "?(9)?"}, {mask(2, capabilities), "0x2\n\t\t\t\tIsSM"},
		{mask(0x2000, capabilities), "0x2000"},
		{line("Lid", "4"), "Lid:.............................4\n"}, {line(strings.Repeat("x", 40), "4"), strings.Repeat("x", 40) + ":4\n"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
	xdr := mad.PortInfo{LinkSpeedExt2Supported: 1, LinkSpeedExt2Active: 1}
	if text := PortInfoLines("", &xdr, false); !strings.Contains(text, line("LinkSpeedExtActive2", "212.5 Gbps")) ||
		!strings.Contains(text, NotDisplayed) {
		t.Error("the speed 212.5 Gbps, or the mark of what is not displayed, is missing in\n", text)
	}
}
