package diags

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares what a tool printed with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s: %s", name, strings.ReplaceAll(difference(string(want), got), "Debian", "golden"))
	}
}

func small(t *testing.T) *topology.Topology {
	t.Helper()
	in, err := os.Open("testdata/small.net")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	top, err := topology.ReadNetlist(in)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// report returns ibdiagnet's report, without the lines that are the same for every fabric of these tests.
func (f *fabricOf) report(want int, args ...string) string {
	f.t.Helper()
	r := f.ours("", "ibdiagnet", append([]string{"-o", "out"}, args...)...)
	if r.status != want || r.errs != "" {
		f.t.Errorf("ibdiagnet %v: status %d, want %d: %s", args, r.status, want, r.errs)
	}
	return r.out
}

// plant sets a block of a switch's forwarding table, by a directed route from the first node.
func (f *fabricOf) plant(attribute uint16, modifier uint32, data []byte, path ...uint8) {
	f.t.Helper()
	s := mad.NewSMP(mad.MethodSet, attribute, modifier, 1)
	copy(s.Data[:], data)
	if err := s.Direct(path); err != nil {
		f.t.Fatal(err)
	}
	f.rack.Do(func(now clock.Time, fab *fabric.Fabric) {
		p := fabric.Packet{SLID: ib.LIDPermissive, DLID: ib.LIDPermissive}
		s.Append(p.MAD[:0])
		if fab.Send(now, fab.Attach(0), &p).Result != fabric.Answered || p.MAD[4]&0x7f != 0 || p.MAD[5] != 0 {
			f.t.Fatalf("the table of the switch at %v was not set", path)
		}
	})
}

// A torus that is routed by shortest paths only has a credit loop, which is reported with its channels. Up/down
// routing has none. DFSSSP has none as long as service levels have their own lanes, but one if a switch maps them all
// to the same lane.
func TestIbdiagnetFindsCreditLoops(t *testing.T) {
	for engine, status := range map[string]int{"minhop": 1, "updn": 0, "dfsssp": 0} {
		top, err := topology.Torus([]int{4, 3}, 1, topology.Rate{})
		if err != nil {
			t.Fatal(err)
		}
		f := serveOwn(t, top, "-R", engine, "-s", "0", "-f", "opensm.log")
		golden(t, "ibdiagnet-torus-"+engine+".txt", f.report(status, "-r"))
		if engine != "dfsssp" {
			continue
		}
		f.oneLane(top)
		golden(t, "ibdiagnet-torus-one-lane.txt", f.report(1, "-r"))
	}
}

// oneLane maps all service levels to lane 0 between all ports of all switches.
func (f *fabricOf) oneLane(top *topology.Topology) {
	f.t.Helper()
	f.rack.Do(func(now clock.Time, fab *fabric.Fabric) {
		for i := range top.Nodes {
			if top.Nodes[i].Type != mad.NodeSwitch {
				continue
			}
			for in := 1; in < len(top.Nodes[i].Ports); in++ {
				for out := 1; out < len(top.Nodes[i].Ports); out++ {
					s := mad.NewSMP(mad.MethodSet, mad.AttrSLtoVLMappingTable, uint32(in<<8|out), 1)
					p := fabric.Packet{DLID: fab.PortInfo(fabric.Place{Node: i}).LID}
					s.Append(p.MAD[:0])
					if fab.Send(now, fab.Attach(0), &p).Result != fabric.Answered || p.MAD[4]&0x7f != 0 || p.MAD[5] != 0 {
						f.t.Fatalf("the table of switch %d was not set", i)
					}
				}
			}
		}
	})
}

// Two adapters with the same GUID are reported with the routes to both.
func TestIbdiagnetFindsDuplicateGUIDs(t *testing.T) {
	top := small(t)
	top.Nodes[2].GUID, top.Nodes[2].Ports[1].GUID = top.Nodes[1].GUID, top.Nodes[1].Ports[1].GUID
	f := serveOwn(t, top, "-f", "opensm.log")
	golden(t, "ibdiagnet-duplicates.txt", f.report(1))
	if out := f.report(0, "-skip", "dup_guids"); strings.Contains(out, "Duplicate") {
		t.Errorf("a check that was to be left out:\n%s", out)
	}
}

// Routes that form loops or lead nowhere are reported for each switch.
func TestIbdiagnetFindsBadRoutes(t *testing.T) {
	f := serveOwn(t, small(t), "-s", "0", "-f", "opensm.log")
	var table [64]byte
	for i := range table {
		table[i] = mad.NoPort
	}
	for lid := 1; lid <= 6; lid++ {
		table[lid] = 7 // back to where everything comes from
	}
	f.plant(mad.AttrLinearForwardingTable, 0, table[:], 1, 7)
	golden(t, "ibdiagnet-routes.txt", f.report(1, "-r", "-skip", "pm,part"))
	text, err := os.ReadFile(filepath.Join(f.dir, "out", "ibdiagnet.fdbs"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "ibdiagnet-routes.fdbs", string(text))
}

// Error counters, narrow or slow links, and multicast groups with loops or in separate parts are reported.
func TestIbdiagnetFindsFaults(t *testing.T) {
	f := serveOwn(t, small(t), "-s", "0", "-f", "opensm.log")
	command := func(line string) {
		t.Helper()
		if _, err := f.own.Command(line); err != nil {
			t.Fatal(err)
		}
	}
	// The manager must not mend what follows. Traps would make it sweep, so faults that cause no trap come first.
	command("counter leaf-1[7] SymbolErrorCounter 17")
	command("counter leaf-2[7] PortRcvErrors 70000")
	command("counter host-d[1] LinkDownedCounter 3")
	var masks mad.MulticastForwardingTable
	masks[4] = 1<<7 | 1<<8 | 1<<1 // over both links: a loop
	masks[5] = 1 << 2             // nothing leads to the other switch
	f.plant(mad.AttrMulticastForwardingTable, 0, masks.Append(nil), 1)
	f.plant(mad.AttrMulticastForwardingTable, 0, masks.Append(nil), 1, 7)
	golden(t, "ibdiagnet-faults.txt", f.report(1, "-r", "-lw", "12x", "-ls", "25", "-pm", "-wt", "found"))
	for _, name := range []string{"pm", "mcfdbs"} {
		text, err := os.ReadFile(filepath.Join(f.dir, "out", "ibdiagnet."+name))
		if err != nil {
			t.Fatal(err)
		}
		if name != "pm" { // that file contains traffic counts
			golden(t, "ibdiagnet-faults."+name, string(text))
		} else if strings.Count(string(text), "SymbolErrorCounter") != 14 || !strings.Contains(string(text),
			"SymbolErrorCounter              : 0x11\n") {
			t.Errorf("the file of all counters:\n%s", text)
		}
	}
	if out := f.report(0, "-t", "found", "-P", "symbol_error_counter=20"); !strings.Contains(out,
		"-I- The fabric is that of the topology file\n") {
		t.Errorf("the topology that was written is not that of the fabric:\n%s", out)
	}
}
