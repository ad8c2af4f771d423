package diags

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sameText are command lines. Their LIDs are those that OpenSM assigns on this netlist, in the order in which it
// finds the nodes: host-a 1, leaf-1 2, leaf-2 3, host-b 4, host-c 5, host-d 6 and 7.
var sameText = `
smpquery nodeinfo 1
smpquery -D nodeinfo 0,1,7
smpquery NI 99
smpquery -e -t 20 NI 99
smpquery -G nodeinfo 0x0002c90300001005
smpquery -G nodeinfo 0x77
smpquery nodedesc 1
smpquery portinfo 1 1
smpquery -K portinfo 1 1
smpquery -D portinfo 0,1 0
smpquery -D portinfo 0,1 7
smpquery -D portinfo 0,1 5
smpquery -x -D portinfo 0,1 7
smpquery -D switchinfo 0,1
smpquery switchinfo 1
smpquery -e switchinfo 1
smpquery pkeys 1
smpquery -D pkeys 0,1 1
smpquery -D pkeys 0,1 99
smpquery sl2vl 1
smpquery -D sl2vl 0,1 1
smpquery vlarb 1
smpquery -D vlarb 0,1 1
smpquery -D vlarb 0,1
smpquery guidinfo 1
smpquery mlnxextportinfo 1 1
smpquery portinfoextended 1 1
smpquery -D nodeinfo 0,1,5
smpdump 1 0x11
smpdump -D 0,1 0x12
smpdump -s -D 0 0x10
smpdump 1 0x16 0
sminfo
sminfo 4
sminfo 2
sminfo -D 0,1,1
ibaddr
ibaddr 3
ibaddr -g 1
ibaddr -l 1
ibaddr -L 1
ibaddr -D 0,1,7
ibaddr -G 0x0002c90300001005
ibaddr 99
ibroute 2
ibroute -a 2
ibroute -n 2
ibroute 2 3 5
ibroute -D 0,1
ibroute -G 0x0002c90200002000
ibroute -M 2
ibroute -Ma 2 0xc000 0xc010
ibroute -M -n 2
ibroute 1
ibtracert 1 5
ibtracert -n 1 5
ibtracert 5 1
ibtracert 2 3
ibtracert 2 2
ibtracert 4 4
ibtracert -v 3 6
ibtracert -G 0x0002c90300001001 0x0002c90300001005
ibtracert 1 99
ibtracert -m 0xc000 1 5
ibportstate 1 1 query
ibportstate 1 1
ibportstate -D 0,1 7 query
ibportstate -D 0,1 5
ibportstate 2 0
ibportstate -D 0,1 8 on
ibportstate 1 1 vls 2 mtu 3
ibportstate 1 1 vls 4 mtu 4
ibnetdiscover
ibnetdiscover -p
ibnetdiscover -g
ibnetdiscover -f
ibnetdiscover -l
ibnetdiscover -H
ibnetdiscover -S
ibnetdiscover -R
iblinkinfo
iblinkinfo -l
iblinkinfo -p
iblinkinfo -d
iblinkinfo --switches-only
iblinkinfo --cas-only
iblinkinfo -D 0,1
iblinkinfo -D 0,1 -a
iblinkinfo -D 0
perfquery
perfquery -x
perfquery 3 8
perfquery -G 0x0002c90300001005
perfquery -l 3
perfquery -la 3
perfquery -la 5
perfquery -l 5 255
perfquery -a 3
perfquery -a 5
perfquery -a 3 1-4
perfquery -a 3 1,2
perfquery -l 3 1,2
perfquery -x 3 1
perfquery -xa 3
perfquery -xa 3 1-3
perfquery -X -t 100 3 1
perfquery -S -t 100 3 1
perfquery -E 3 1
perfquery -D 3 1
perfquery -T -t 100 3 1
perfquery -c -t 100 3 1
perfquery --oprcvcounters 3 1
perfquery --flowctlcounters 3 1
perfquery --vloppackets 3 1
perfquery --vlopdata 3 1
perfquery --vlxmitflowctlerrors 3 1
perfquery --vlxmitcounters 3 1
perfquery 99
perfquery 3 77
perfquery -r 3 2
perfquery -R 2 8
perfquery -R 2 8 0x0fff
perfquery -x -R 2 8
perfquery -E -R 3 1
ibqueryerrors
ibqueryerrors --counters
ibstat
ibstat -s
ibstat -p
ibstat -l
ibstat ibsim0
ibstat ibsim0 1
saquery NR 1
saquery PIR 1/1
saquery SWIR 2
saquery LR
saquery LR 1
saquery LR 2/7 3/7
saquery SMIR
saquery SR
saquery IIR
saquery MCMR
saquery CPI
saquery -c
saquery -g
saquery PKTR
saquery --smkey 1 PKTR 1/1/0
saquery LFTR 2/0
saquery MFTR 2
saquery GIR 1/0
saquery SL2VL 1
saquery VLAR 1/1/1
saquery -p --src-to-dst 1:5
saquery --slid 1 --dlid 5 PR
saquery --sgid-to-dgid fe80::2:c903:0:1003-fe80::2:c903:0:1005
saquery NR 99
`

// Debian's tool and ours print the same on both streams, and exit with the same status.
// Where the port does not answer, -t makes that short, but not so short that answers before it come too late on a busy machine.
func TestTextOfInfinibandDiags(t *testing.T) {
	f := newFabric(t, "testdata/small.net", true)
	for line := range strings.Lines(sameText) {
		if line = strings.TrimSpace(line); line != "" {
			f.compare(t, "host-b", line)
		}
	}
}

// Each of the two tools undoes what the other set, with the same answers.
func TestPortStatesAreSetAlike(t *testing.T) {
	f := newFabric(t, "testdata/small.net", true)
	for _, c := range [][2]string{{"speed 1", "speed 7"}, {"width 2", "width 3"}} {
		args := func(i int) []string { return append([]string{"-D", "0,1", "8"}, strings.Fields(c[i])...) }
		f.debian("host-b", "ibportstate", args(0)...) // so that the LIDs are those that the first Set leaves
		f.debian("host-b", "ibportstate", args(1)...)
		want := f.debian("host-b", "ibportstate", args(0)...)
		f.debian("host-b", "ibportstate", args(1)...)
		if got := f.ours("host-b", "ibportstate", args(0)...); got != want {
			t.Errorf("%s: %s %s", c[0], difference(want.out, got.out), got.errs)
		}
		want = f.debian("host-b", "ibportstate", "-D", "0,1", "8")
		if got := f.ours("host-b", "ibportstate", "-D", "0,1", "8"); got != want {
			t.Errorf("after %s: %s %s", c[0], difference(want.out, got.out), difference(want.errs, got.errs))
		}
		f.ours("host-b", "ibportstate", args(1)...)
	}
}

// Each tool reads the caches that the other wrote, and edits and compares them in the same way.
func TestCachesAreInterchangeable(t *testing.T) {
	f := newFabric(t, "testdata/small.net", true)
	type run func(string, string, ...string) result
	do := func(by run, line string) {
		t.Helper()
		words := strings.Fields(line)
		if r := by("host-b", words[0], words[1:]...); r.status != 0 {
			t.Errorf("%s: status %d, %s %s", line, r.status, r.out, r.errs)
		}
	}
	do(f.debian, "ibnetdiscover --cache theirs")
	do(f.ours, "ibnetdiscover --cache ours")
	edit := "ibcacheedit --switchguid 0x0002c90200002000:0xabc --sysimgguid 0x0002c90300001000:6 --caguid 0x0002c90300001004:0xdef --portguid 0x0002c90300001000:0x0002c90300001001:5 "
	do(f.debian, edit+"ours theirs2")
	do(f.ours, edit+"theirs ours2")
	for _, line := range []string{
		"ibnetdiscover --load-cache theirs", "ibnetdiscover --load-cache ours", "ibnetdiscover --load-cache theirs2",
		"ibnetdiscover --load-cache ours2",
		"ibnetdiscover --diff theirs2", "ibnetdiscover --diff ours2 --diffcheck sw,ca,port,lid,nodedesc", "ibnetdiscover --diff ours",
		"iblinkinfo --load-cache ours2 -l", "iblinkinfo --diff theirs2", "iblinkinfo --diff ours2 --diffcheck port,state,lid,nodedesc",
		"iblinkinfo --filterdownports ours",
		"ibcacheedit --caguid 1:2 ours none", "ibcacheedit --portguid 1:2:3 ours none",
	} {
		f.compare(t, "host-b", line)
	}
	f.say(`Unlink "leaf-1"[7]`)
	for _, line := range []string{"ibnetdiscover", "ibnetdiscover --diff ours", "iblinkinfo", "iblinkinfo --diff theirs"} {
		f.compare(t, "host-b", line)
	}
}

// Deliberate errors are found, shown, left out and reset in the same way.
func TestErrorsAreReportedAlike(t *testing.T) {
	f := newFabric(t, "testdata/small.net", true)
	for _, what := range []string{
		`"leaf-1"[8] PortCounters.SymbolErrorCounter=17`, `"leaf-2"[7] PortCounters.LinkDownedCounter=3`,
		`"host-c"[1] PortCounters.PortXmitDiscards=30`, `"host-d"[2] PortCounters.PortRcvErrors=5`,
	} {
		f.say("PerformanceSet " + what)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "thresholds"), []byte("# some\nLinkDownedCounter=10\nSymbolErrorCounter=16\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"ibqueryerrors", "ibqueryerrors -r", "ibqueryerrors -s SymbolErrorCounter,LinkDownedCounter", "ibqueryerrors -c",
		"ibqueryerrors --data",
		"ibqueryerrors --counters -r", "ibqueryerrors --switch", "ibqueryerrors --ca", "ibqueryerrors -D 0,1",
		"ibqueryerrors --threshold-file thresholds",
		"perfquery 2 8", "perfquery -a 2", "perfquery -a 3 1-8",
	} {
		f.compare(t, "host-b", line)
	}
	f.ours("host-b", "ibqueryerrors", "-k")
	f.compare(t, "host-b", "ibqueryerrors")
	for i, args := range [][]string{nil, {"topology"}} {
		f.say(`PerformanceSet "leaf-1"[8] PortCounters.SymbolErrorCounter=9`)
		f.say(`PerformanceSet "host-d"[2] PortCounters.PortRcvErrors=5`)
		if r := f.debian("host-b", "ibqueryerrors"); r.status != 1 {
			t.Fatalf("the errors were not planted: %s", r.out)
		}
		f.ours("host-b", "ibnetdiscover", "topology")
		if r := f.ours("host-b", "ibclearerrors", args...); r.out != "\n## Summary: 6 nodes cleared 0 errors\n" || r.status != 0 {
			t.Errorf("ibclearerrors %v: %d, %s %s", args, r.status, r.out, r.errs)
		}
		if r := f.debian("host-b", "ibqueryerrors"); r.status != 0 {
			t.Errorf("%d: errors are left: %s", i, r.out)
		}
	}
}

// times matches how long an answer took.
var times = regexp.MustCompile(`\d+\.\d{3}|time \d+ ms`)

// Debian's client gets the same answers from our server as ours does, and our client gets from Debian's server what
// Debian's client gets from ours.
func TestNodesAnswerEachOther(t *testing.T) {
	f := newFabric(t, "testdata/small.net", true, "-o") // the stock preload library does not survive a subnet manager that asks
	f.server("host-c", "5", "ibping", true)
	f.server("host-d", "6", "ibsysstat", true)
	const pings = "ibping -c 1 5"
	same := func(line string, want, got result) {
		t.Helper()
		want.out, got.out = times.ReplaceAllString(want.out, "T"), times.ReplaceAllString(got.out, "T")
		if want != got || want.status != 0 {
			t.Errorf("%s: %s\n%d %d %s %s", line, difference(want.out, got.out), want.status, got.status, want.errs, got.errs)
		}
	}
	var answers []result
	for _, line := range []string{pings, "ibsysstat 6", "ibsysstat 6 host", "ibsysstat 6 cpu"} {
		w := strings.Fields(line)
		want := f.debian("host-b", w[0], w[1:]...)
		same(line, want, f.ours("host-b", w[0], w[1:]...))
		answers = append(answers, want)
	}
	if got := f.ours("host-b", "ibping", "-c", "1", "-t", "20", "4"); got.status != 0 || !strings.Contains(got.out,
		"1 packets transmitted, 0 received, 100% packet loss") {
		t.Errorf("a node without a server: %d %s", got.status, got.out)
	}
	g := newFabric(t, "testdata/small.net", true, "-o")
	g.server("host-c", "5", "ibping", false)
	same(pings, answers[0], g.ours("host-b", "ibping", "-c", "1", "5"))
}

// The real OpenSM behind the stock preload library sends no segments: a table ends after its first 200 bytes.
// Debian's tool shows that part as if it were the whole; ours reports that the table was cut, and shows the same
// records.
func TestCutTablesAreTold(t *testing.T) {
	f := newFabric(t, "testdata/small.net", true)
	for _, line := range []string{"saquery", "saquery NR", "saquery -O 1", "saquery -U 0x0002c90300001001", "saquery PIR"} {
		w := strings.Fields(line)
		want, got := f.debian("host-b", w[0], w[1:]...), f.ours("host-b", w[0], w[1:]...)
		if want.out != got.out && line != "saquery PIR" { // for PIR it shows bytes that were never sent
			t.Errorf("%s: %s\nDebian's: %d %s", line, difference(want.out, got.out), want.status, want.errs)
		}
		if got.status != 0 || strings.Count(got.errs, "without segments") != 1 {
			t.Errorf("%s: %d, %s", line, got.status, got.errs)
		}
	}
}

// Wrong usage exits with status 2, as everywhere in this project, and one line that says what is allowed.
func TestWrongUsage(t *testing.T) {
	f := newFabric(t, "testdata/small.net", true)
	for _, line := range []string{
		"smpquery", "smpquery nodeinfo", "smpquery what 1", "smpquery nodeinfo 0", "smpquery nodeinfo 49152", "smpquery -D nodeinfo 0,x",
		"smpquery -D nodeinfo 1,1", "smpquery nodeinfo 1 1", "smpquery portinfo 1 256", "smpquery portinfo 1 1 1", "smpquery -c nodeinfo 1",
		"smpquery --nothing nodeinfo 1", "smpquery -t 0 nodeinfo 1", "smpquery -t", "smpquery --P nodeinfo=1", "smpquery --help=1",
		"smpquery -G ni 0",
		"smpdump 1", "smpdump 1 0x10000", "smpdump 1 0x11 x", "sminfo -s 4", "sminfo 1 2 3", "sminfo 1 x", "ibaddr 1 2 3", "ibaddr 1 x",
		"ibaddr x",
		"ibroute", "ibroute 1 x", "ibroute 1 2 3 4", "ibtracert 1", "ibtracert 1 x", "ibtracert -m 1 1 2", "ibportstate 1",
		"ibportstate 1 x",
		"ibportstate 1 1 up", "ibportstate 1 1 speed", "ibportstate 1 1 speed 16", "ibportstate 1 1 width 32",
		"ibportstate 1 1 enable disable",
		"ibnetdiscover a b", "ibnetdiscover --diffcheck x", "ibnetdiscover -o 0", "iblinkinfo 1", "iblinkinfo -S x",
		"iblinkinfo -D 0 --load-cache x", "ibcacheedit a",
		"perfquery 1 x", "perfquery 1 5-2", "perfquery 1 1 x", "perfquery 1 1 1 1", "ibqueryerrors x", "ibqueryerrors -s nothing",
		"ibclearerrors a b",
		"ibping", "ibping -c 0 1", "ibping -o 0x1000000 1", "ibsysstat", "ibsysstat 1 what", "ibstat a b c",
		"saquery NR 0", "saquery NR 1/2", "saquery PIR 1/256", "saquery -L", "saquery -O x", "saquery --src-to-dst 1", "saquery --sgid x",
		"saquery -Q 4096", "saquery IIR x",
		"ibdiagnet x", "ibdiagnet -lw 3x", "ibdiagnet -ls 11", "ibdiagnet -P nothing=1", "ibdiagnet -skip x", "ibdiagnet -t none",
		"ibdiagnet -i 2", "ibdiagnet -p 9",
		"ibdiagpath", "ibdiagpath -l 1 -d 1", "ibdiagpath -d x",
		"ibcacheedit --caguid 1 a b", "ibcacheedit --portguid 1:2 a b", "ibcacheedit --caguid 1:x a b",
	} {
		words := strings.Fields(line)
		if r := f.ours("host-b", words[0], words[1:]...); r.status != 2 || strings.Count(r.errs, "\n") != 1 ||
			!strings.Contains(r.errs, "allowed") || r.out != "" {
			t.Errorf("%s: status %d, %q, %q", line, r.status, r.out, r.errs)
		}
	}
	if r := f.ours("host-b", "smpquery", "-h"); r.status != 0 || !strings.Contains(r.out, "usage: smpquery [options]") {
		t.Errorf("-h: status %d, %q", r.status, r.out)
	}
	if r := f.ours("nobody", "sminfo"); r.status != 255 || !strings.Contains(r.out, `no node "nobody"`) {
		t.Errorf("a node that is not there: status %d, %q", r.status, r.out)
	}
	if r := f.ours("host-b", "sminfo", "-C", "mlx5_0"); r.status != 255 || !strings.Contains(r.out, "there is 'ibsim0' port '1'") {
		t.Errorf("an adapter that is not there: status %d, %q", r.status, r.out)
	}
}
