package fabric

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/mad"
)

// What ibnetdiscover prints is what was built: every node, link, width and speed.
func TestDiscoversWhatWasBuilt(t *testing.T) {
	t.Parallel()
	tree := func(s topology.FatTreeShape, r topology.Rate) *topology.Topology {
		top, err := topology.FatTree(s, r)
		if err != nil {
			t.Fatal(err)
		}
		return top
	}
	torus, err := topology.Torus([]int{3, 3}, 2, topology.Rate{Width: mad.Width12x, Speed: mad.SpeedQDR})
	if err != nil {
		t.Fatal(err)
	}
	dragonfly, err := topology.Dragonfly(5, 2, 2, 2, topology.Rate{Width: mad.Width4x, Speed: mad.SpeedEDR})
	if err != nil {
		t.Fatal(err)
	}
	for name, top := range map[string]*topology.Topology{
		"fat tree of 128":       tree(topology.FatTreeShape{Radix: 16, Levels: 2}, topology.Rate{}),
		"fat tree of two ports": tree(topology.FatTreeShape{Radix: 8, Levels: 3, HostPorts: 2}, topology.Rate{Speed: mad.SpeedFDR}),
		"torus":                 torus,
		"dragonfly":             dragonfly,
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			g.serve(top)
			g.opensm("node00000", "-t", "5000") // a fabric without a processor for a while answers late, which is no error
			g.log("node00000.log", "SUBNET UP")
			seen, err := topology.ReadNetlist(strings.NewReader(g.must("node00001", "ibnetdiscover")))
			if err != nil {
				t.Fatal(err)
			}
			if missing, extra := difference(links(top), links(seen)); len(missing)+len(extra) != 0 {
				t.Errorf("%d links are not found, such as %.3q, and %d are found that are not there, such as %.3q", len(missing), missing,
					len(extra), extra)
			}
			if errs := errorsOf(g, "node00000.log"); errs != "" {
				t.Errorf("OpenSM has errors:\n%s", errs)
			}
		})
	}
}

// links returns the links of a topology, named by the GUIDs of their ends.
func links(t *topology.Topology) map[string]bool {
	m := map[string]bool{}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		for j := range n.Ports {
			if p := &n.Ports[j]; p.Linked() {
				peer := &t.Nodes[p.Peer]
				m[fmt.Sprintf("%v %x %q port %d (%x) to %x port %d, %dx%v", n.Type, n.GUID, n.Description, j, p.GUID, peer.GUID, p.PeerPort,
					mad.Lanes(p.Width), p.Speed)] = true
			}
		}
	}
	return m
}

func difference(want, got map[string]bool) (missing, extra []string) {
	for l := range want {
		if !got[l] {
			missing = append(missing, l)
		}
	}
	for l := range got {
		if !want[l] {
			extra = append(extra, l)
		}
	}
	return missing, extra
}

func errorsOf(g *ground, log string) string {
	b, err := os.ReadFile(filepath.Join(g.dir, log))
	if err != nil {
		g.t.Fatal(err)
	}
	var errs strings.Builder
	for l := range strings.Lines(string(b)) {
		if strings.Contains(l, " ERR ") {
			errs.WriteString(l)
		}
	}
	return errs.String()
}

// When a cable is pulled OpenSM is notified by a trap, represses it, and routes around the link. When it is put back
// the link is brought up again.
func TestOpenSMRoutesAroundALostLink(t *testing.T) {
	t.Parallel()
	g := ours(t, netlist)
	g.opensm("hca1", "-s", "0") // sweeps only when a trap asks for one
	g.log("hca1.log", "SUBNET UP")
	by := func() string { // the port of sw1 through which hca3, LID 5, is reached
		for l := range strings.Lines(g.must("hca2", "ibroute", "-n", "2")) {
			if f := strings.Fields(l); len(f) > 1 && f[0] == "0x0005" {
				return f[1]
			}
		}
		return ""
	}
	first := by()
	if first != "007" && first != "008" {
		t.Fatalf("hca3 is reached by port %q", first)
	}
	port := strings.TrimLeft(first, "0")
	g.do("unlink sw1[" + port + "]")
	g.wait("hca3 is reached another way", func() bool { return by() != first })
	g.do("relink sw1[" + port + "]")
	g.wait("the link is active again", func() bool {
		out, status := g.tool("hca2", "smpquery", "-D", "portinfo", "0,1", port)
		return status == 0 && strings.Contains(out, "LinkState:.......................Active")
	})
	out, _ := g.tool("hca2", "ibqueryerrors")
	if want := "GUID 0x2c90200002000 port " + port + ": [LinkDownedCounter == 1]"; !strings.Contains(out, want) {
		t.Errorf("ibqueryerrors does not tell %s:\n%s", want, out)
	}
}

// A switch that restarts has no LID and no tables; OpenSM gives it both again.
func TestOpenSMConfiguresARestartedSwitch(t *testing.T) {
	t.Parallel()
	g := ours(t, netlist)
	g.opensm("hca1", "-s", "0")
	g.log("hca1.log", "SUBNET UP")
	g.must("hca1", "smpquery", "nodeinfo", "3")
	g.do("reset sw2")
	g.wait("sw2 answers at its LID", func() bool {
		_, status := g.tool("hca1", "smpquery", "nodeinfo", "3")
		return status == 0
	})
	g.wait("what is behind it is reached", func() bool {
		_, status := g.tool("hca1", "perfquery", "5", "1")
		return status == 0
	})
}

// Two subnet managers elect a master; when it is killed the other takes over.
func TestOpenSMFailsOver(t *testing.T) {
	t.Parallel()
	g := ours(t, netlist)
	master := g.opensm("hca1", "-p", "9")
	g.log("hca1.log", "SUBNET UP")
	fast := filepath.Join(g.dir, "fast.conf")
	if err := os.WriteFile(fast, []byte("sminfo_polling_timeout 1000\npolling_retry_number 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.opensm("hca3", "-p", "5", "-F", fast)
	g.log("hca3.log", "Entering STANDBY state")
	if out := g.must("hca2", "sminfo"); !strings.Contains(out, "sm guid 0x2c90300001001") {
		t.Errorf("before: %s", out)
	}
	if err := master.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	g.log("hca3.log", "Entering MASTER state")
	g.wait("hca2 knows the new one", func() bool {
		out, status := g.tool("hca2", "sminfo")
		return status == 0 && strings.Contains(out, "sm guid 0x2c90300001005") && strings.Contains(out, "SMINFO_MASTER")
	})
}

// At M_Key protection level 2 a requester without the key can neither read nor set anything, and OpenSM is notified
// of each attempt.
func TestOpenSMProtectsByMKey(t *testing.T) {
	t.Parallel()
	g := ours(t, netlist)
	conf := filepath.Join(g.dir, "mkey.conf")
	if err := os.WriteFile(conf, []byte("m_key 0x1234\nm_key_protection_level 2\nm_key_lease_period 60\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.opensm("hca1", "-F", conf)
	g.log("hca1.log", "SUBNET UP")
	if out, status := g.tool("hca2", "smpquery", "nodeinfo", "5"); status == 0 {
		t.Errorf("read without the key: %s", out)
	}
	if out := g.must("hca2", "smpquery", "-y", "0x1234", "portinfo", "5", "1"); !strings.Contains(out,
		"MkeyViolations:..................") || strings.Contains(out, "MkeyViolations:..................0\n") {
		t.Errorf("no violation is counted: %s", out)
	}
	g.log("hca1.log", "num:256")
}
