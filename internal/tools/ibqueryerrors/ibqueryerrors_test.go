package ibqueryerrors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHuman(t *testing.T) {
	for _, c := range []struct {
		v    uint64
		data bool
		want string
	}{
		{0, false, "[x == 0 (0.000)]"}, {617, false, "[x == 617 (617.000)]"}, {2510, false, "[x == 2510 (2.451K)]"},
		{1 << 20, false, "[x == 1048576 (1.000M)]"},
		{1<<64 - 1, false, "[x == 18446744073709551615 (16.000E)]"},
	} {
		if got := shown("x", c.v); got != c.want {
			t.Errorf("%+v is shown as %s, want %s", c.v, got, c.want)
		}
	}
	for v, want := range map[uint64]string{0: "(0.000B)", 3960: "(15.469KB)", 44928: "(175.500KB)", 255: "(1020.000B)",
		1<<64 - 1: "(64.000EB)"} {
		if got := shown("PortXmitData", v); !strings.HasSuffix(got, want+"]") {
			t.Errorf("%v bytes are shown as %s, want %s", v, got, want)
		}
	}
}

func TestThresholds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "thresholds")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# comment\n\nSymbolErrorCounter=0x10\n")
	got, err := readThresholds(file)
	if err != nil || got.values["SymbolErrorCounter"] != 16 || got.text != "[SymbolErrorCounter = 16]" {
		t.Errorf("read %+v, %v; want a threshold of 16 for SymbolErrorCounter", got, err)
	}
	for _, line := range []string{"SymbolErrorCounter", "SymbolErrorCounter=x", "Nothing=1"} {
		write("# 1\n" + line)
		if _, err := readThresholds(file); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v, want an error that names line 2", line, err)
		}
	}
	if _, err := readThresholds(file + "x"); err == nil {
		t.Error("reading a file that is not there gives no error")
	}
}

func TestTopologyFile(t *testing.T) {
	got, err := readTopology(strings.NewReader(`#
Switch	8 "S-0002c90200002001"		# "port 0 lid 9 lmc" base port 0 lid 3 lmc 0
[1]	"H-0002c90300001004"[1](2c90300001005) 		# "host lid 5" lid 5 4xQDR

Ca	2 "H-0002c90300001006"		# "host-d HCA-1"
[1](2c90300001007) 	"S-0002c90200002001"[2]		# lid 6 lmc 0 "leaf-2" lid 3 4xQDR
[2](2c90300001008) 	"S-0002c90200002000"[3]		# lid 7 lmc 0 "leaf-1" lid 2 4xQDR
`))
	want := []target{{[]place{{3, 255}}}, {[]place{{6, 1}, {7, 2}}}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(target{}, place{})); d != "" || err != nil {
		t.Error("the topology differs (-want +got):\n", d, err)
	}
	for _, text := range []string{"", "nothing", "Ca\t1 \"x\"\n[1](1) \t\"y\"[1]\t\t# lid 99999 lmc 0\n"} {
		if got, err := readTopology(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read as %v, want an error", text, got)
		}
	}
}
