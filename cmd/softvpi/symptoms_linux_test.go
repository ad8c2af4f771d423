package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// symptom is one of docs/troubleshooting.md that a test can make.
type symptom struct {
	page   string     // what the page says that one sees, in its words
	make   [][]string // commands on a driver with two adapters that bring it about
	see    []string   // the command that shows it
	status int
	says   string // what it prints
	check  []string
	found  string // what the page's command finds then
}

// FIRST and SECOND stand for the addresses of the two adapters, OTHER for one that nobody has, DIR for the directory of the place.
var symptoms = []symptom{
	{page: "another driver is running: process N holds ...", see: []string{"up"}, status: 1, says: "another driver is running: process "},
	{page: "address ... is in use by ...", see: []string{"up", "--state", "DIR/other", "--socket", "DIR/other.sock", "--adapter", "a=FIRST"},
		status: 1, says: "is in use by "},
	{page: "ND_CONNECTION_REFUSED: nothing answers on the RoCE port", see: []string{"nd_rping", "-c", "-a", "OTHER"}, status: 1,
		says: "ND_CONNECTION_REFUSED: nothing answers on the RoCE port"},
	{page: "ND_CONNECTION_REFUSED: nobody listens on this port", see: []string{"nd_rping", "-c", "-a", "FIRST"}, status: 1,
		says: "ND_CONNECTION_REFUSED: nobody listens on this port"},
	{page: "ND_IO_TIMEOUT", make: [][]string{{"link", "set", "Ethernet 1", "path=wire"}, {"link", "set", "Ethernet 2", "path=wire"},
		{"link", "set", "Ethernet 1", "loss=100%"}}, see: []string{"nd_rping", "-c", "-a", "FIRST"}, status: 1, says: "ND_IO_TIMEOUT",
		check: []string{"link", "show"}, found: "loss=100%"},
	{page: "ND_INVALID_ADDRESS", see: []string{"nd_send_bw", "-C", "FIRST", "-L", "OTHER", "--mode", "attached"}, status: 1,
		says: "ND_INVALID_ADDRESS", check: []string{"ndinstall", "-l"}, found: "FIRST"},
	{page: "ND_DEVICE_REMOVED", make: [][]string{{"adapter", "disable", "Ethernet 2"}}, see: []string{"nd_send_bw", "-C", "FIRST", "-L", "SECOND"},
		status: 1, says: "ND_DEVICE_REMOVED", check: []string{"status"}, found: "Ethernet 2: disabled"},
	{page: "takes N bytes of memory: the driver holds ...: allowed: ... (limits.memory...)",
		see: []string{"nd_send_bw", "-C", "FIRST", "--cycle", "33554432"}, status: 1, says: "(limits.memory_per_program)",
		check: []string{"status"}, found: "at most 16.0 MiB for one"},
	{page: "InfiniBand: PORT_DOWN (6.3)", make: [][]string{{"down"}, {"up", "--background", "--fabric", "DIR/nowhere", "--adapter",
		"ib0=cable,address=10.9.0.1"}}, see: []string{"vstat"}, says: "port_state=PORT_DOWN", check: []string{"fabric", "do", "clients"},
		found: "no fabric is served"},
	{page: "packets are dropped, or slow, in one traffic class (6.5)", make: append(slices.Clone(framed), []string{"qos", "set", "Ethernet 4",
		"pfc=3"}), see: []string{"qos", "show", "Ethernet 4"}, says: "asks PFC 3", check: []string{"qos", "show", "Ethernet 5"},
		found: "asks none"},
	{page: "path MTU 1024 where 4096 was expected", make: framed, see: []string{"status"}, says: "path MTU 1024 of link MTU 1500"},
}

// framed replaces the adapters by two whose wire, which they share, carries frames of 1500 bytes.
var framed = [][]string{{"down"}, {"up", "--background", "--skip-self-check", "--adapter", "Ethernet 4=192.0.2.1/24,datagram=DIR/l,peer=DIR/r",
	"--adapter", "Ethernet 5=192.0.2.2/24,datagram=DIR/r,peer=DIR/l"}}

// TestSymptoms: what docs/troubleshooting.md says that one sees is what one sees, and the command that it names finds the cause.
func TestSymptoms(t *testing.T) {
	systemtest.Mark(t)
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symptoms {
		t.Run(s.page, func(t *testing.T) {
			if !strings.Contains(string(text), "| `"+s.page+"`") && !strings.Contains(string(text), "| "+s.page+" |") {
				t.Errorf("the page has no such symptom")
			}
			t.Parallel()
			p := newPlace(t)
			t.Cleanup(func() { p.run(t, "down") }) // the one in the background, if there is one
			p.up(t, "--skip-self-check", "--limits", "memory_per_program=16MiB")
			words := strings.NewReplacer("FIRST", p.first, "SECOND", p.second, "OTHER", loopback.Pair()[0].String(), "DIR", p.dir)
			run := func(args []string) (int, string) {
				list := make([]string, len(args))
				for i, a := range args {
					list[i] = words.Replace(a)
				}
				code, out, errs := p.run(t, list...)
				return code, out + errs
			}
			for _, c := range s.make {
				if code, out := run(c); code != 0 {
					t.Fatalf("%q: status %d, %s", c, code, out)
				}
			}
			if code, out := run(s.see); code != s.status || !strings.Contains(out, s.says) {
				t.Errorf("%q: status %d, %s; want %d and %q", s.see, code, out, s.status, s.says)
			}
			if s.check == nil {
				return
			}
			if _, out := run(s.check); !strings.Contains(out, words.Replace(s.found)) {
				t.Errorf("%q does not show %q:\n%s", s.check, s.found, out)
			}
		})
	}
}

// TestSymptoms_WithoutDriver: those of a driver that is not there, and of a tool that brings up an adapter of its own.
func TestSymptoms_WithoutDriver(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	if code, _, errs := p.run(t, "status"); code != 1 || !strings.Contains(errs, "no driver is running at "+filepath.Join(p.dir, "d.sock")) {
		t.Errorf("status %d, %s", code, errs)
	}
	p.up(t, "--skip-self-check")
	other := newPlace(t)
	x := p.spawn(t, "nd_send_bw", "-S", other.first)
	x.until(t, "#qp")
	want := "the driver has no adapter at " + other.first + ": this one is embedded"
	await.Eventually(t, "the tool says that its adapter is embedded", func() bool { return strings.Contains(x.errors(), want) })
}
