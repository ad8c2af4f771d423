package topology

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/softvpi/softvpi/wire/mad"
)

func read(t testing.TB, file string) *Topology {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	top, err := ReadNetlist(f)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// byGUID returns the nodes with their links by GUID, without what a subnet manager assigns.
func byGUID(t *Topology) map[uint64]Node {
	m := map[uint64]Node{}
	for _, n := range t.Nodes {
		c := n
		c.ID = ""
		c.Ports = append([]Port(nil), n.Ports...)
		for i := range c.Ports {
			p := &c.Ports[i]
			p.LID = 0
			if p.Linked() {
				p.Peer = int32(t.Nodes[p.Peer].GUID & 0xffff)
			}
		}
		m[n.GUID] = c
	}
	return m
}

// TestBothDialects: a netlist written for ibsim and ibnetdiscover's output for it, plain and grouped, describe the
// same fabric.
func TestBothDialects(t *testing.T) {
	want := byGUID(read(t, "testdata/small.net"))
	if len(want) != 6 {
		t.Fatalf("%d nodes", len(want))
	}
	for _, file := range []string{"testdata/small.ibnetdiscover", "testdata/small-g.ibnetdiscover"} {
		if d := cmp.Diff(want, byGUID(read(t, file))); d != "" {
			t.Errorf("%s: (-want +got)\n%s", file, d)
		}
	}
}

// TestReadDetails: GUIDs are numbered as in the file, and LIDs in comments are the ports' initial LIDs.
func TestReadDetails(t *testing.T) {
	top := read(t, "testdata/small.ibnetdiscover")
	sw, ca := &top.Nodes[0], &top.Nodes[3]
	if sw.Type != mad.NodeSwitch || sw.Ports[0].LID != 3 || sw.VendorID != 0x2c9 || sw.DeviceID != 0xb924 || sw.EnhancedPort0 {
		t.Errorf("the switch was read as %+v", sw)
	}
	if ca.Description != "hca4 HCA-1" || ca.Ports[2].GUID != 0x2c90300001008 || ca.Ports[2].LID != 7 || ca.Ports[2].Speed != mad.SpeedQDR {
		t.Errorf("hca4 was read as %+v", ca)
	}
	if p := ca.Ports[2]; top.Nodes[p.Peer].ID != "S-0002c90200002000" || p.PeerPort != 3 {
		t.Errorf("the port of hca4 was read as %+v", p)
	}
}

const twoNodes = "Switch 2 \"s\"\n[1] \"a\"[1]%s\n\nCa 1 \"a\"\n[1] \"s\"[1]%s\n"

// TestLinkRates: the width and speed of a link are those that either end names, the lesser of the two, or ibsim's
// default.
func TestLinkRates(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		lanes int
		speed mad.Speed
	}{
		{"", "", 4, mad.SpeedSDR},
		{` # "a" lid 0 4xQDR`, "", 4, mad.SpeedQDR},
		{` # "a" lid 0 12xEDR`, ` # lid 0 lmc 0 "s" lid 0 2xHDR`, 2, mad.SpeedEDR},
		{` # "a" lid 0 1xXDR`, ` # lid 0 lmc 0 "s" lid 0 1xXDR`, 1, mad.SpeedXDR},
		{" w=8 s=7", "", 12, mad.SpeedQDR},
		{" w=3 s=3", " w=3", 4, mad.SpeedDDR},
		{" s=7 e=3", "", 4, mad.SpeedEDR},
		{"(1) s=4 w=2 v=4 m=5", "", 4, mad.SpeedQDR},
		{` # "a" lid 0 4xFDR10`, "", 4, mad.SpeedFDR10},
	} {
		top, err := ReadNetlist(strings.NewReader(fmt.Sprintf(twoNodes, c.a, c.b)))
		if err != nil {
			t.Errorf("%q %q: %v", c.a, c.b, err)
			continue
		}
		if p := top.Nodes[1].Ports[1]; mad.Lanes(p.Width) != c.lanes || p.Speed != c.speed || p.Width != top.Nodes[0].Ports[1].Width {
			t.Errorf("%q %q: %dx%v, want %dx%v", c.a, c.b, mad.Lanes(p.Width), p.Speed, c.lanes, c.speed)
		}
	}
}

func TestNetlistRefuses(t *testing.T) {
	const sw = "Switch 2 \"s\"\n"
	for _, c := range []struct {
		text  string
		line  int
		field string
	}{
		{"", 0, "file"},
		{"# nothing\n\n", 0, "file"},
		{"Witch 8 \"s\"\n", 1, "word"},
		{"include \"other\"\n", 1, "word"},
		{"vendid=x\n", 1, "vendid"},
		{"vendid=0x1000000\n", 1, "vendid"},
		{"devid=0x10000\n", 1, "devid"},
		{"caguid=0\n", 1, "caguid"},
		{"switchguid=1(zz)\n", 1, "switchguid"},
		{"width=32\n", 1, "width"},
		{"speed=0\n", 1, "speed"},
		{"extspeed=16\n", 1, "extspeed"},
		{"colour=1\n", 1, "word"},
		{"Switch 8 s\n", 1, "node id"},
		{"Switch 8 \"s\n", 1, "node id"},
		{"Switch 255 \"s\"\n", 1, "number of ports"},
		{"Switch 0 \"s\"\n", 1, "number of ports"},
		{"Switch \"s\"\n", 1, "number of ports"},
		{sw + "\nCa 1 \"s\"\n", 3, "node id"},
		{"Ca 1 \"a\" # \"" + strings.Repeat("x", 65) + "\"\n", 1, "node description"},
		{"Switch 1 \"s\" # \"s\" base port 0 lid 49152 lmc 0\n", 1, "lid"},
		{"Switch 1 \"s\" # \"s\" base port 0 lid 1 lmc 8\n", 1, "lmc"},
		{"[1] \"s\"[1]\n", 1, "port"},
		{sw + "\n[1] \"s\"[1]\n", 3, "port"},
		{sw + "[3] \"s\"[1]\n", 2, "port"},
		{sw + "[0] \"s\"[1]\n", 2, "port"},
		{sw + "[1 \"s\"\n", 2, "port"},
		{sw + "[1] s\n", 2, "remote node"},
		{sw + "[1] \"t\"[1]\n", 2, "remote node"},
		{sw + "[1] \"s\"[3]\n", 2, "remote port"},
		{sw + "[1] \"s\"[x]\n", 2, "remote port"},
		{sw + "[1] \"s\"[2\n", 2, "remote port"},
		{sw + "[1] \"s\"[1]\n", 2, "remote port"},
		{sw + "[1](x) \"s\"[2]\n", 2, "port GUID"},
		{sw + "[1] \"s\"[2](x)\n", 2, "remote port GUID"},
		{sw + "[1] \"s\"[2] q=1\n", 2, "option"},
		{sw + "[1] \"s\"[2] w=0\n", 2, "option"},
		{sw + "[1] \"s\"[2] # \"s\" lid 0 3xQDR\n", 2, "link width"},
		{sw + "[1] \"s\"[2] # \"s\" lid 0 4xODR\n", 2, "link speed"},
		{sw + "[1] \"a\"[1]\n[2] \"a\"[1]\n\nCa 1 \"a\"\n", 3, "remote port"},
		{"switchguid=5\n" + sw + "\nswitchguid=5\nSwitch 1 \"t\"\n", 5, "node GUID"},
		{"caguid=5\nCa 2 \"a\"\n\nrtguid=0x60\nRt 1 \"t\"\n\ncaguid=4\nCa 2 \"b\"\n", 8, "port GUID"},
		{strings.Repeat("x", maxNetlistLine+1), 1, "line"},
	} {
		_, err := ReadNetlist(strings.NewReader(c.text))
		var e *netlistError
		if !errors.As(err, &e) || e.Line != c.line || e.Field != c.field {
			t.Errorf("%.80q: %v, want line %d, %s", c.text, err, c.line, c.field)
		}
	}
}

func TestNetlistTooLarge(t *testing.T) {
	var b strings.Builder
	for i := range maxPorts/(MaxNodePorts+1) + 1 {
		fmt.Fprintf(&b, "Switch %d \"%d\"\n", MaxNodePorts, i)
	}
	var e *netlistError
	if _, err := ReadNetlist(strings.NewReader(b.String())); !errors.As(err, &e) || e.Field != "node" {
		t.Errorf("error %v, want one about the node", err)
	}
}

// TestWritesAsIbnetdiscover: a netlist is written line by line as ibnetdiscover prints the same fabric.
func TestWritesAsIbnetdiscover(t *testing.T) {
	want, err := os.ReadFile("testdata/small.ibnetdiscover")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := read(t, "testdata/small.ibnetdiscover").WriteNetlist(&b); err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(want), "\n\n") // behind the date
	if d := cmp.Diff(strings.TrimSpace(body), strings.TrimSpace(b.String())); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, n := range []Node{
		NewNode(mad.NodeCA, "", "x", 1, 1), NewNode(mad.NodeCA, `a"b`, "x", 1, 1), NewNode(mad.NodeCA, "a#", "x", 1, 1),
		NewNode(mad.NodeCA, "a", "x\n", 1, 1),
	} {
		var e *netlistError
		if err := (&Topology{Nodes: []Node{n}}).WriteNetlist(&bytes.Buffer{}); !errors.As(err, &e) {
			t.Errorf("%q %q: %v, want an error: the format cannot hold it", n.ID, n.Description, err)
		}
	}
}

// FuzzReadNetlist: no text makes the reader panic, and what it accepts can be written and reads back the same.
func FuzzReadNetlist(f *testing.F) {
	for _, file := range []string{"testdata/small.net", "testdata/small.ibnetdiscover", "testdata/small-g.ibnetdiscover"} {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add(fmt.Sprintf(twoNodes, " w=3 s=3", ` # lid 0 lmc 0 "s" lid 0 2xHDR`))
	f.Fuzz(func(t *testing.T, text string) {
		top, err := ReadNetlist(strings.NewReader(text))
		if err != nil {
			return
		}
		var once, twice bytes.Buffer
		if err := top.WriteNetlist(&once); err != nil {
			return // a carriage return within a text
		}
		again, err := ReadNetlist(bytes.NewReader(once.Bytes()))
		if err != nil {
			t.Fatalf("%v\n%s", err, once.String())
		}
		if err := again.WriteNetlist(&twice); err != nil || once.String() != twice.String() {
			t.Fatalf("%v\n%s\nthen\n%s", err, once.String(), twice.String())
		}
	})
}
