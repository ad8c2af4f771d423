package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/lacp"
)

const small = `{
 "topology": {"kind": "incast", "senders": 2},
 "workload": {"kind": "incast", "size": "1MB"}
}`

// TestRead_Errors: what is wrong is named by file, line and field, with what it is and what is allowed.
func TestRead_Errors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{\n\"lean\": 1}", `f:2: lean is 1; allowed: true or false`},
		{"[]", `f:1: an array; allowed: one JSON object`},
		{"{", `f:1: it ends too soon; allowed: one JSON object`},
		{"{\n\n\"a\" 1}", `f:3: not JSON: `},
		{"{} {}", `f:1: something follows the object; allowed: one JSON object`},
		{"{\n\"seed\": 1,\n\"seed\": 2}", `f:3: seed is there twice; allowed: each field once`},
		{"{\n\"sedd\": 1}", `f:2: sedd is no field of a scenario; allowed: name, description, seed, lean, duration, sample, topology`},
		{`{"topology": {"kind": "tree"}}`, `f:1: topology.kind is "tree"; allowed: incast, star, leaf-spine, fat-tree, ring, links, netlist`},
		{`{"topology": {"rate": "40"}}`, ``},
		{`{"topology": {"rate": "40Gbit"}}`,
			`f:1: topology.rate is "40Gbit"; allowed: 1 Mb/s to 1 Tb/s, a number of Gb/s or a text such as 40Gb/s`},
		{`{"topology": {"senders": 64}}`, `f:1: topology.senders is 64; allowed: 1 to 63`},
		{`{"topology": {"senders": 1.5}}`, `f:1: topology.senders is 1.5; allowed: 1 to 63`},
		{`{"topology": {"kind": "fat-tree", "radix": 5}}`, `f:1: topology.radix is 5; allowed: even numbers`},
		{`{"topology": {"kind": "links", "hosts": ["a", "a"]}}`, `f:1: topology.hosts.1 is "a" again; allowed: a name that no other node has`},
		{`{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s"], "links": [{"from": "a", "to": "x"}]}}`,
			`f:1: topology.links.0.to is "x"; allowed: the name of a host or switch of the topology`},
		{`{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s"], "links": [{"from": "a", "to": "s"}]}}`,
			`f:1: topology is with 0 links at the host b; allowed: 1 to 8 links at each host`},
		{`{"nic": {"dcbx": "yes"}}`, `f:1: nic.dcbx is "yes"; allowed: off, auto, ieee, cee`},
		{`{"nic": {"dcbx": "auto", "pause": true}}`, `f:1: nic.dcbx is auto; allowed: off where pause is true`},
		{`{"switch": {"lacp": "on"}}`, `f:1: switch.lacp is "on"; allowed: off, active, passive`},
		{`{"switch": {"lacp": "active", "lacp_rate": "1s"}}`, `f:1: switch.lacp_rate is "1s"; allowed: slow, fast`},
		{`{"switch": {"lacp_rate": "fast"}}`, `f:1: switch.lacp_rate is fast; allowed: none where lacp is off`},
		{`{"switch": {"lacp": "active", "lacp_choice": "most"}}`, `f:1: switch.lacp_choice is "most"; allowed: stable, bandwidth, count`},
		{`{"learning": true, "ports": {"receiver": {"lacp": "active"}}}`,
			`f:1: ports.receiver.lacp is of a port that is in no bundle; allowed: one of a host with several links`},
		{`{"learning": true, "topology": {"kind": "star", "bundle": 2}, "ports": {"host0": {"lacp": "active"}, "host0[2]": {"lacp": "passive"}}}`,
			`f:1: ports.host0[2].lacp is of a bundle for the second time; allowed: once for all ports of a bundle`},
		{`{"topology": {"kind": "leaf-spine", "bundle": 2}, "switches": {"spine0": {"lacp": "active"}}}`,
			`f:1: switches.spine0.lacp is on at a switch without a bundle; allowed: off where no host has several links: ` +
				`those between switches are no bundles, and flows take all of them anyway`},
		{`{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s", "t"], "links": [{"from": "a", "to": "s"}, {"from": "s", "to": "t"},
			{"from": "t", "to": "s"}, {"from": "t", "to": "b"}]}, "switch": {"lacp": "active"}}`, `f:2: switch.lacp is on where only switches have several links to each other; ` +
			`allowed: off where no host has several links: those between switches are no bundles, and flows take all of them anyway`},
		{`{"nic": {"lacp": "fast"}}`, `f:1: nic.lacp is "fast"; allowed: off, active, passive`},
		{`{"nics": {"sender0": {"lacp": "active"}}}`,
			`f:1: nics.sender0.lacp is of a host with one link; allowed: one of a host with several links`},
		{`{"nics": {"sender0": {"lacp_keys": [1]}}}`,
			`f:1: nics.sender0.lacp is of a host with one link; allowed: one of a host with several links`},
		{`{"nic": {"lacp_keys": [0]}}`, `f:1: nic.lacp_keys is 0; allowed: an array of a key for each link of a host, 1 to 65535`},
		{`{"nic": {"lacp_keys": [1, 65536]}}`, `f:1: nic.lacp_keys is 65536; allowed: an array of a key for each link of a host, 1 to 65535`},
		{`{"nic": {"lacp_keys": 5}}`, `f:1: nic.lacp_keys is 5; allowed: an array of a key for each link of a host, 1 to 65535`},
		{`{"nic": {"lacp": "off", "lacp_keys": [1, 1]}}`, `f:1: nic.lacp_keys is an array; allowed: none where lacp is off`},
		{`{"nic": {"lacp": "off", "lacp_rate": "fast"}}`, `f:1: nic.lacp_rate is fast; allowed: none where lacp is off`},
		{`{"topology": {"kind": "star", "bundle": 2}, "nic": {"lacp_keys": [1]}}`,
			`f:1: nic.lacp_keys is an array of 1; allowed: an array of 2 keys, one for each link of a host`},
		{`{"topology": {"kind": "star", "bundle": 2}, "nics": {"host1": {"lacp_keys": [1, 2, 3]}}}`,
			`f:1: nics.host1.lacp_keys is an array of 3; allowed: an array of 2 keys, one for each link of a host`},
		{`{"topology": {"kind": "star", "bundle": 9}}`, `f:1: topology.bundle is 9; allowed: 1 to 8`},
		{`{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s", "t"],
			"links": [{"from": "a", "to": "s"}, {"from": "a", "to": "t"}, {"from": "b", "to": "t"}]}}`,
			`f:1: topology is with links of the host a to s and t; allowed: links of a host to one switch`},
		{`{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s"],
			"links": [{"from": "a", "to": "s"}, {"from": "a", "to": "s", "rate": 10}, {"from": "b", "to": "s"}]}}`,
			`f:1: topology is with links of the host a that differ; allowed: links of a host with the same rate and delay`},
		{`{"topology": {"kind": "links", "hosts": ["a", "b"], "links": [{"from": "a", "to": "b"}]}}`,
			`f:1: topology is with a link of the hosts a and b; allowed: links of hosts to switches`},
		{`{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s", "t"],
			"links": [{"from": "a", "to": "s"}, {"from": "b", "to": "t"}]}}`,
			`f:1: topology is without a way from a to b; allowed: one network`},
		{`{"topology": {"kind": "netlist", "file": "nowhere"}}`,
			`f:1: topology.file is open nowhere: no such file or directory; allowed: a netlist`},
		{"{\n\"switch\": {\n\"kmin\": 6,\n\"kmax\": \"5KB\"}}", `f:3: switch.kmin is 6 KB; allowed: 0 to kmax, which is 5 KB`},
		{`{"switch": {"pfc": [8]}}`, `f:1: switch.pfc is 8; allowed: an array of priorities, 0 to 7`},
		{`{"switch": {"pfc": [3], "pause": true}}`, `f:1: switch.pause is true; allowed: false where pfc has priorities`},
		{`{"switch": {"weights": [1, 2]}}`,
			`f:1: switch.weights is an array; allowed: an array of eight weights, 0 to 100, one for each priority`},
		{`{"switch": {"weights": [1, 2, 3, 4, 5, 6, 7, 101]}}`, `f:1: switch.weights.7 is 101; allowed: 0 to 100`},
		{`{"switch": {"xoff": "1MB", "xoff_alpha": 1}}`, `f:1: switch.xoff_alpha is 1; allowed: nothing where xoff is given`},
		{`{"switch": {"priorities": {"8": {}}}}`, `f:1: switch.priorities.8 is no field of a scenario; allowed: 0, 1, 2, 3, 4, 5, 6, 7`},
		{`{"switches": {"leaf": {}}}`, `f:1: switches.leaf is no switch of the topology; allowed: switch`},
		{`{"nic": {"DcqcnRpgThreshold": 32}}`, `f:1: nic.DcqcnRpgThreshold is 32; allowed: 1 to 31 raises`},
		{`{"nic": {"mtu": 1000}}`, `f:1: nic.mtu is 1000; allowed: 256, 512, 1024, 2048 or 4096 bytes of payload`},
		{`{"switch": {"mtu": 575}}`, `f:1: switch.mtu is 575; allowed: 576 to 9216`},
		{`{"ports": {"receiver": {"mtu": 9217}}}`, `f:1: ports.receiver.mtu is 9217; allowed: 576 to 9216`},
		{`{"nics": {"switch": {}}}`, `f:1: nics.switch is no host of the topology; allowed: sender0, sender1, receiver`},
		{`{"workload": {"kind": "incast", "to": "x"}}`, `f:1: workload.to is "x"; allowed: a host of the topology: sender0, sender1, receiver`},
		{`{"workload": [{"hosts": ["sender0"]}]}`, `f:1: workload.0.hosts is 1 hosts; allowed: 2 or more`},
		{`{"workload": {"kind": "poisson"}}`, `f:1: workload is with both or neither of size and sizes; allowed: a size, or a file of sizes`},
		{`{"workload": {"kind": "poisson", "size": 1e-3, "load": 2}, "duration": "100s"}`,
			`f:1: workload is more than 1048576 flows; allowed: 1048576 flows`},
		{`{"faults": {"port": "x"}}`, `f:1: faults.kind is not there; allowed: unlink, loss, rate, take, storm or pfc`},
		{`{"faults": {"kind": "unlink", "port": "switch"}}`,
			`f:1: faults.port is "switch"; allowed: a host, or a port of a switch, such as leaf0[1]`},
		{`{"faults": [{"kind": "unlink", "port": "switch[4]"}]}`, `f:1: faults.0.port is "switch[4]"; allowed: a host, or a port`},
		{`{"faults": {"kind": "take", "port": "switch[1]"}}`, `f:1: faults.port is "switch[1]"; allowed: a host: sender0, sender1, receiver`},
		{`{"faults": {"kind": "rate", "port": "receiver", "rate": "41Gb/s"}}`,
			`f:1: faults.rate is "41Gb/s"; allowed: 1 Mb/s to the link's 40 Gb/s`},
		{`{"faults": {"kind": "loss", "port": "receiver", "share": "101%"}}`, `f:1: faults.share is "101%"; allowed: 0 to 1`},
		{`{"faults": {"kind": "loss", "port": "receiver", "at": 5, "until": 5}}`, `f:1: faults.until is 5; allowed: a time after at`},
		{`{"switch": {"pause": true}, "faults": {"kind": "pfc", "port": "switch"}}`,
			`f:1: faults.kind is "pfc" where whole links are paused; allowed: pfc where pause is false`},
		{`{"ports": {"receiver": {"pvid": 5}}}`, `f:1: ports is with VLANs; allowed: pvid and trunk where learning is true`},
		{`{"ports": {"receiver": {"pvid": 4095}}}`, `f:1: ports.receiver.pvid is 4095; allowed: 1 to 4094`},
		{`{"ports": {"receiver": {"trunk": "5-1"}}}`, `f:1: ports.receiver.trunk is "5-1"; allowed: VLAN IDs as 10+20-29, or all`},
		{`{"ports": {"switch[0]": {}}}`, `f:1: ports.switch[0] is no port of a switch; allowed: a host`},
		{`{"learning": true, "ports": {"receiver": {"pvid": 5}}}`,
			`f:1: workload is with a flow from sender0 in VLAN 1 to receiver in VLAN 5; allowed: flows between hosts of one VLAN`},
		{`{"learning": true, "ports": {"receiver": {"trunk": "5"}}}`, `f:1: ports is without a pvid at receiver; allowed: a pvid for each host`},
		{`{"learning": true, "topology": {"kind": "leaf-spine"}}`,
			`f:1: learning is true, with 24 links between 22 nodes; allowed: false where links are in a circle`},
		{`{"duration": "1s", "sample": "1us"}`, `f:1: sample is 1µs; allowed: longer: there are too many samples of too many ports`},
	} {
		_, err := Read("f", []byte(c.text))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s\n%s\nwant %s", c.text, got, c.want)
		}
	}
}

// TestRead_Files: errors in files that a scenario names have their lines.
func TestRead_Files(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"sizes": "1 0\n10 50\n5 100\n",
		"flows.csv": "from,to,size,start\nsender0,receiver,10KB,0\nsender0,x,1,1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ text, want string }{
		{`{"workload": {"kind": "poisson", "sizes": "sizes"}}`, `sizes:3: the line is "5 100"; allowed: a size in bytes and the share`},
		{`{"workload": {"kind": "csv", "file": "flows.csv"}}`, `flows.csv:3: the line is "sender0,x,1,1" (not two hosts); allowed: from,to,size`},
		{`{"workload": {"kind": "csv", "file": "none"}}`, `:1: workload.file is open `},
	} {
		_, err := Read(filepath.Join(dir, "f"), []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestRead: what a scenario says, and the defaults of what it does not say.
func TestRead(t *testing.T) {
	s, err := Read("dir/f.json", []byte(`{
		"topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts": 3, "rate": 25, "uplink_rate": "100Gb/s", "delay": "500ns"},
		"switch": {"buffer": "2MB", "pfc": [3, 4], "kmin": 5, "kmax": "200KB", "pmax": "1%", "mark": "coming", "strict": [6],
			"weights": [1, 1, 1, 50, 20, 1, 1, 1], "xoff": "30KB", "priorities": {"4": {"kmax": 0, "kmin": 0, "headroom": "none", "weight": 7}}},
		"switches": {"spine1": {"pfc": []}},
		"nic": {"dcqcn": "authors", "DcqcnEnablePrio3": 1, "DcqcnNPEnablePrio3": 0, "mtu": 4096, "pfc": 3, "cnp_interval": 4},
		"nics": {"host5": {"take": "1Gb/s", "DcqcnRpgAiRate": 7}},
		"workload": {"kind": "all-to-all", "size": "10KB"}, "duration": "1ms", "lean": true}`))
	if err != nil {
		t.Fatal(err)
	}
	g := s.Graph
	if len(g.Hosts) != 6 || len(g.Nodes) != 10 || len(g.Links) != 10 || len(s.Flows.All) != 30 {
		t.Errorf("%d hosts, %d nodes, %d links, %d flows", len(g.Hosts), len(g.Nodes), len(g.Links), len(s.Flows.All))
	}
	if g.Links[0].Rate != 25e9 || g.Links[9].Rate != 100e9 || g.Links[9].Delay != 500*time.Nanosecond {
		t.Errorf("links %+v and %+v", g.Links[0], g.Links[9])
	}
	if s.Name != "f" || s.Seed != 1 || s.Sample != 5*time.Microsecond || !s.Lean {
		t.Errorf("%q, seed %d, sample %v", s.Name, s.Seed, s.Sample)
	}
	leaf, spine := s.Switches[g.Find("leaf0")], s.Switches[g.Find("spine1")]
	if leaf.Lossless != 1<<3|1<<4 || leaf.Flow != ethernet.PriorityPause || spine.Lossless != 0 || spine.Flow != ethernet.NoFlowControl {
		t.Errorf("pauses of %08b and %08b", leaf.Lossless, spine.Lossless)
	}
	q := leaf.Queues
	if e := q[3].ECN; e.Kmin != 5000 || e.Kmax != 200_000 || e.Pmax != 0.01 || e.Leaving || q[4].ECN.Kmax != 0 {
		t.Errorf("marks %+v and %+v", e, q[4].ECN)
	}
	if q[3].Weight != 50 || q[4].Weight != 7 || !q[6].Strict || q[3].Strict || leaf.Groups[4].Headroom != -1 ||
		leaf.Groups[3].Xoff != 30_000 {
		t.Errorf("queues %+v, groups %+v", q, leaf.Groups)
	}
	a, b := s.NICs[g.Find("host0")], s.NICs[g.Find("host5")]
	if c := a.Congestion; c.React != 1<<3 || c.Notify != 0 || c.Reaction.AIRate != 40 || c.Reaction.LineRate != 25_000 ||
		c.CNPInterval != 4*time.Microsecond {
		t.Errorf("congestion %+v", c)
	}
	if a.MTU != 4096 || a.Lossless != 1<<3 || a.Take != 0 || b.Take != 1e9 ||
		b.Congestion.Reaction.AIRate != 7 || b.Congestion.Reaction.HAIRate != 200 {
		t.Errorf("adapters %+v and %+v", a, b)
	}
}

// TestCombine: a sweep has a run for each combination, and fields by their last names where they are clear.
func TestCombine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f.json")
	if err := os.WriteFile(name, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	base, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := Combine(base, []Set{{Path: "switch.kmax", Text: "200KB"}}, []string{"kmin=5,40", "seed=1,2,3"})
	if err != nil {
		t.Fatal(err)
	}
	if r := runs[4]; len(runs) != 6 || r.Label != "kmin=40 seed=2" || r.Seed != 2 || r.Switches[3].Queues[0].ECN.Kmin != 40_000 {
		t.Errorf("%d runs, the fifth %q", len(runs), runs[4].Label)
	}
	for _, c := range []struct{ sweep, want string }{
		{"kmin", "--sweep kmin: not understood; allowed: FIELD=VALUE,VALUE..., such as kmin=5,40,160"},
		{"pfc=3", "--sweep pfc=3: pfc is the name of several fields; allowed: nic.pfc, switch.pfc"},
		{"nothing=1", "--sweep nothing=1: nothing is no field of the scenario; allowed: the path of one"},
		{"seed=1,x", `--sweep seed=1,x: seed is "x"; allowed: 0 to 9007199254740992`},
		{"kmin=300", "--sweep kmin=300: switch.kmin is 300 KB; allowed: 0 to kmax, which is 200 KB"},
	} {
		_, err := Combine(base, []Set{{Path: "switch.kmax", Text: "200KB"}}, []string{c.sweep})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.sweep, err, c.want)
		}
	}
}

// FuzzRead: no text of a scenario makes its reader panic, and errors name the file.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("../../../examples/simulate/*.json")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(small))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1000 {
			return
		}
		_, err := Read("f", text)
		if err != nil && !strings.Contains(err.Error(), ":") {
			t.Error(err)
		}
	})
}

// TestReadFabric_LACP: a bundle is aggregated as its switch says, and as one of its ports does otherwise.
func TestReadFabric_LACP(t *testing.T) {
	f, err := ReadFabric("f", []byte(`{"topology": {"kind": "star", "hosts": 3, "bundle": 2},
		"switch": {"lacp": "active", "lacp_choice": "count"},
		"ports": {"host1[2]": {"lacp": "passive", "lacp_rate": "fast"}, "host2": {"lacp": "off"}, "host0": {"pvid": 2}}}`))
	if err != nil {
		t.Fatal(err)
	}
	at := f.Graph.Find("switch")
	for i, want := range []LACP{{On: true, Choice: lacp.Count},
		{On: true, Passive: true, Fast: true, Choice: lacp.Count}, {Choice: lacp.Count}} {
		if got := f.LACPOf(at, f.Bundles[at][i]); got != want {
			t.Errorf("bundle %d: %+v, want %+v", i, got, want)
		}
	}
}

// TestReadFabric_Bundle: of a host with several links each has a host live, and their ports are a bundle of the switch, in all forms that
// simulations have of them.
func TestReadFabric_Bundle(t *testing.T) {
	for _, topology := range []string{`{"kind": "star", "hosts": 2, "bundle": 2}`,
		`{"kind": "links", "hosts": ["host0", "host1"], "switches": ["switch"], "links": [{"from": "host0", "to": "switch"},
			{"from": "switch", "to": "host0"}, {"from": "host1", "to": "switch"}, {"from": "host1", "to": "switch"}]}`} {
		file := []byte(`{"topology": ` + topology + `, "nics": {"host1": {"pfc": [5]}}, "ports": {"host1[2]": {"priority": 2}}}`)
		s, err := Read("f", append(file[:len(file)-1:len(file)-1], `, "learning": true}`...))
		if err != nil || len(s.Graph.Hosts) != 2 || len(s.Graph.Nodes[s.Graph.Hosts[1]].Links) != 2 {
			t.Fatalf("simulated: %v", err)
		}
		f, err := ReadFabric("f", file)
		if err != nil {
			t.Fatal(err)
		}
		g := f.Graph
		at := g.Find("switch")
		if got := fmt.Sprint(f.Bundles[at]); got != "[[0 1] [2 3]]" || len(f.Ports) != 1 || f.Ports[0].Node != at || f.Ports[0].Port != 3 {
			t.Errorf("bundles %s, ports %+v", got, f.Ports)
		}
		var names []string
		for _, h := range g.Hosts {
			x := &g.Nodes[h]
			other, port := g.Links[x.Links[0]].Other(h)
			if len(x.Links) != 1 || other != at || f.NICs[h] == nil {
				t.Errorf("%+v, NIC %+v", x, f.NICs[h])
			}
			names = append(names, fmt.Sprintf("%s at %d, PFC %#x", x.Name, port, f.NICs[h].Lossless))
		}
		if got := strings.Join(names, "; "); got != "host0 at 0, PFC 0x0; host1 at 2, PFC 0x20; host0[2] at 1, PFC 0x0; host1[2] at 3, PFC 0x20" {
			t.Errorf("hosts %s", got)
		}
	}
	for _, read := range []func() error{func() error { _, err := Read("f", []byte(`{"bundles": []}`)); return err },
		func() error { _, err := ReadFabric("f", []byte(`{"bundles": []}`)); return err }} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "bundles") {
			t.Errorf("an unknown field: %v", err)
		}
	}
}
