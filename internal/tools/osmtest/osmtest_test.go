package osmtest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

func TestOptions(t *testing.T) {
	var out bytes.Buffer
	o, err := parse(strings.Fields("-f f -s4 -i inv.dat -l x.log -M 3 -t 500 --window=64 -d1 -vf 0x7 -g 0x2c9 -w 7"), &out)
	if err != nil {
		t.Fatal(err)
	}
	want := options{flow: "f", stress: 4, inventory: "inv.dat", log: "x.log", multicast: 3, timeout: 500 * time.Millisecond, window: 64,
		count: 100000, wait: 7 * time.Second,
		noPaths: true, flags: 7, guid: 0x2c9}
	if o != want {
		t.Errorf("options are read as %+v, want %+v", o, want)
	}
	text := "\tStress test enabled: Small Path Record SA queries\n\tFile = inv.dat\n\tLog File: x.log\n\tMulticast test enabled: Long MC Flow - single mode\n" +
		"\tTransaction timeout = 500\n\tDebug Option: Ignore Path Records\n\tVerbose option -vf (log flags = 0x7)\n Guid <0x2c9>\n\tTrap 64/65 wait time = 7\n"
	if out.String() != text {
		t.Errorf("printed %q, want %q", out.String(), text)
	}
	for line, part := range map[string]string{
		"-f x": "allowed: a, c, v, s, e", "-w 0": "allowed: 1 to", "-m 5": "all LIDs", "-s 5": "allowed: 1 to 4", "-M 0": "allowed: 1 to 4",
		"-t x": "allowed: 1 to", "-f": "wants a value",
		"--window 0": "allowed: 1 to 4096", "-G": "not supported", "-q": "unknown option", "--fast": "unknown option",
		"-d 3": "allowed: 0, 1, 2, 4", "here": "unknown option",
	} {
		_, err := parse(strings.Fields(line), io.Discard)
		var usage *tool.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q", line, err, part)
		}
	}
}

// An inventory is read as it was written, and lines that are not compared are skipped.
func TestInventory(t *testing.T) {
	node := mad.NodeRecord{LID: 3, Info: mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeSwitch, NumPorts: 8,
		NodeGUID: 0x2c90200002001}}
	path := mad.PathRecord{DGID: ib.GID{0xfe, 0x80, 15: 1}, SGID: ib.GID{0xfe, 0x80, 15: 2}, DLID: 1, SLID: 2, PKey: 0xffff, SL: 5,
		QoSClass: 7}
	port := mad.PortInfoRecord{EndPortLID: 3, PortNum: 7, Info: mad.PortInfo{PortState: mad.PortActive, LinkSpeedSupported: 7, MTUCap: 5}}
	link := mad.LinkRecord{FromLID: 1, FromPort: 2, ToPort: 3, ToLID: 4}
	var b bytes.Buffer
	for i, r := range [][]byte{node.Append(nil), port.Append(nil), path.Append(nil), link.Append(nil)} {
		kinds[i].write(&b, [][]byte{r})
	}
	for _, line := range []string{
		"#\n# Node Records\n#\nDEFINE_NODE\nlid                     0x3\n", "node_type               0x2 # (Switch)\n",
		"node_guid               0x0002c90200002001\n",
		"port_state              ACTIVE\n", "link_speed_supported    0x7\n", "mtu_cap                 0x5\n",
		"# sl                    0x5\n", "# qos_class             0x7\n",
		"dgid                    0xfe80000000000000 0x0000000000000001\n", "to_lid                  0x4\nEND\n\n",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("%q is not written in:\n%s", line, b.String())
		}
	}
	all, err := readInventory(&b, "inv.dat")
	if err != nil {
		t.Fatal(err)
	}
	if len(all["NODE"]) != 1 || len(all["PORT"]) != 1 || len(all["PATH"]) != 1 || len(all["LINK"]) != 1 {
		t.Fatalf("read %v, want one record of each kind", all)
	}
	for i, r := range [][]byte{node.Append(nil), port.Append(nil), path.Append(nil), link.Append(nil)} {
		k := &kinds[i]
		got := k.read(r)
		for name, v := range all[k.define][0] {
			if got[name] != v {
				t.Errorf("%s %s: %q was written, %q read", k.define, name, got[name], v)
			}
		}
	}
}

func TestInventoryErrors(t *testing.T) {
	for text, part := range map[string]string{
		"lid 0x1\n": "line 1", "DEFINE_HOUSE\n": "allowed: DEFINE_NODE", "DEFINE_NODE\nroof 7\nEND\n": "line 2",
		"DEFINE_NODE\nlid\nEND\n": "line 2",
		"DEFINE_NODE\nlid 0x1\n":  "no END", "DEFINE_NODE\nDEFINE_PORT\n": "line 2",
	} {
		_, err := readInventory(strings.NewReader(text), "inv.dat")
		var usage *tool.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want %q", text, err, part)
		}
	}
}

// compare reports each record that is missing, new or different once.
func TestCompare(t *testing.T) {
	k := &kinds[3]
	a, b, c := mad.LinkRecord{FromLID: 1, FromPort: 2, ToPort: 3, ToLID: 4}, mad.LinkRecord{FromLID: 5, FromPort: 6, ToPort: 7, ToLID: 8},
		mad.LinkRecord{FromLID: 9, FromPort: 1, ToPort: 1, ToLID: 1}
	x := &test{o: options{}}
	x.compare(k, []record{k.read(a.Append(nil)), k.read(b.Append(nil))}, [][]byte{a.Append(nil), c.Append(nil)})
	if x.problem != 2 {
		t.Errorf("%d problems, want 2: one is missing and one is new", x.problem)
	}
	n := &kinds[0]
	node := mad.NodeRecord{LID: 3, Info: mad.NodeInfo{NumPorts: 8}}
	other := node
	other.Info.NumPorts = 9
	x = &test{}
	x.compare(n, []record{n.read(node.Append(nil))}, [][]byte{other.Append(nil)})
	if x.problem != 1 {
		t.Errorf("%d problems, want 1: another number of ports", x.problem)
	}
}

func FuzzInventory(f *testing.F) {
	f.Add("DEFINE_NODE\nlid 0x1\nEND\n")
	f.Add("#\nDEFINE_PATH\ndgid 0x1 0x2 # x\nEND\nEND\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readInventory(strings.NewReader(text), "x")
		if err == nil {
			for i := range kinds {
				for _, r := range all[kinds[i].define] {
					_ = kinds[i].id(r)
				}
			}
		}
	})
}
