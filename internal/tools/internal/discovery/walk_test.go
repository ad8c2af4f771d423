package discovery

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/mad"
)

// device is a node of the tests' fabrics. Its links lead from a port to another device, by index, and a port of that
// device.
type device struct {
	kind  mad.NodeType
	guid  uint64
	ports uint8
	links map[uint8][2]int
}

// answer returns the attribute that the device at the end of a request's route has; false if the route leads nowhere.
func answer(devices []*device, r *Request) (data [mad.SMPDataLen]byte, ok bool) {
	at, by := 0, 1
	for i, port := range r.Path[1:] {
		d := devices[at]
		to, linked := d.links[port]
		if !linked || i > 0 && d.kind != mad.NodeSwitch {
			return data, false
		}
		at, by = to[0], to[1]
	}
	d := devices[at]
	switch r.Attribute {
	case mad.AttrNodeInfo:
		n := mad.NodeInfo{NodeType: d.kind, NumPorts: d.ports, NodeGUID: d.guid, PortGUID: d.guid + uint64(by), LocalPortNum: uint8(by)}
		if d.kind == mad.NodeSwitch {
			n.PortGUID = d.guid
		}
		copy(data[:], n.Append(nil))
	case mad.AttrNodeDescription:
		copy(data[:], fmt.Sprintf("device %d", at))
	case mad.AttrSwitchInfo:
		copy(data[:], (&mad.SwitchInfo{LinearFDBTop: 7}).Append(nil))
	case mad.AttrPortInfo:
		p := mad.PortInfo{LocalPortNum: uint8(by), PortState: mad.PortDown, PortPhysicalState: mad.PhysicalPolling}
		if _, linked := d.links[uint8(r.Modifier)]; linked {
			p.PortState, p.PortPhysicalState = mad.PortActive, mad.PhysicalLinkUp
		}
		copy(data[:], p.Append(nil))
	}
	return data, true
}

var errSilent = errors.New("silent")

// walk goes through a fabric with several requests outstanding; choose picks which of them is answered next.
func walk(t interface{ Fatal(...any) }, o Options, outstanding int, choose func(n int) int,
	reply func(*Request) ([mad.SMPDataLen]byte, error)) *Walk {
	type under struct {
		r      *Request
		number int
	}
	w := NewWalk(o)
	var flying []under
	for steps := 0; ; steps++ {
		if steps > 3_000_000 {
			t.Fatal("the walk does not end after 3 million steps")
		}
		for len(flying) < outstanding {
			r, n := w.Next()
			if r == nil {
				break
			}
			flying = append(flying, under{r, n})
		}
		if len(flying) == 0 {
			if !w.over() {
				t.Fatal("no request is outstanding, but the walk is not over")
			}
			return w
		}
		i := choose(len(flying))
		f := flying[i]
		flying = append(flying[:i], flying[i+1:]...)
		data, err := reply(f.r)
		w.Answer(f.number, &data, err)
	}
}

func inOrder(int) int { return 0 }

func honest(devices []*device) func(*Request) ([mad.SMPDataLen]byte, error) {
	return func(r *Request) ([mad.SMPDataLen]byte, error) {
		data, ok := answer(devices, r)
		if !ok {
			return data, errSilent
		}
		return data, nil
	}
}

// small returns a fabric of two switches with two links between them, an adapter at the first switch, and one with a
// port at each.
func small() []*device {
	d := []*device{
		{mad.NodeCA, 0x100, 1, map[uint8][2]int{1: {1, 1}}},
		{mad.NodeSwitch, 0x200, 8, map[uint8][2]int{1: {0, 1}, 3: {3, 2}, 7: {2, 7}, 8: {2, 8}}},
		{mad.NodeSwitch, 0x300, 8, map[uint8][2]int{2: {3, 1}, 7: {1, 7}, 8: {1, 8}}},
		{mad.NodeCA, 0x400, 2, map[uint8][2]int{1: {2, 2}, 2: {1, 3}}},
	}
	return d
}

// shape returns a fabric's nodes, their routes and their links as text, to be compared.
func shape(f *Fabric) (lines []string) {
	for _, n := range f.Nodes {
		lines = append(lines, fmt.Sprintf("%x %s %v", n.Info.NodeGUID, n.Description, n.Path))
		for _, p := range n.Ports {
			if p != nil && p.Remote != nil {
				lines = append(lines, fmt.Sprintf("  %d -> %x %d", p.Num, p.Remote.Node.Info.NodeGUID, p.Remote.Num))
			}
		}
	}
	return lines
}

func TestWalkFindsEverything(t *testing.T) {
	f, faults, err := walk(t, Options{}, 4, inOrder, honest(small())).Result()
	if err != nil || len(faults) != 0 {
		t.Fatalf("faults %v, error %v; want none", faults, err)
	}
	want := []string{
		"100 device 0 [0]", "  1 -> 200 1",
		"200 device 1 [0 1]", "  1 -> 100 1", "  3 -> 400 2", "  7 -> 300 7", "  8 -> 300 8",
		"400 device 3 [0 1 3]", "  1 -> 300 2", "  2 -> 200 3",
		"300 device 2 [0 1 7]", "  2 -> 400 1", "  7 -> 200 7", "  8 -> 200 8",
	}
	if d := cmp.Diff(want, shape(f)); d != "" {
		t.Error("the fabric differs (-want +got):\n", d)
	}
	if f.MaxHops != 3 || f.From.Info.NodeGUID != 0x100 || f.FromPort != 1 {
		t.Errorf("%d hops from %x port %d, want 3 from 100 port 1", f.MaxHops, f.From.Info.NodeGUID, f.FromPort)
	}
	if got := f.Backwards(mad.NodeSwitch); len(got) != 2 || got[0].Info.NodeGUID != 0x300 {
		t.Error("Backwards does not list the two switches from the last")
	}
	if p := f.PortByGUID(0x402); p == nil || p.Num != 2 || f.PortByGUID(0x777) != nil {
		t.Errorf("port 0x402 is %v, want port 2, and no port 0x777", p)
	}
}

// The result depends neither on the order in which answers come nor on how many requests are outstanding.
func TestWalkDoesNotDependOnOrder(t *testing.T) {
	want, _, _ := walk(t, Options{}, 1, inOrder, honest(small())).Result()
	rapid.Check(t, func(t *rapid.T) {
		got, _, err := walk(t, Options{}, rapid.IntRange(1, 40).Draw(t, "outstanding"), func(n int) int {
			return rapid.IntRange(0, n-1).Draw(t, "which")
		}, honest(small())).Result()
		if d := cmp.Diff(shape(want), shape(got)); d != "" || err != nil {
			t.Fatal("(-want +got):\n", d, err)
		}
	})
}

func TestWalkStopsAtHops(t *testing.T) {
	f, _, err := walk(t, Options{From: []uint8{0, 1}, MaxHops: 1}, 4, inOrder, honest(small())).Result()
	if err != nil || f.From.Info.NodeGUID != 0x200 || len(f.Nodes) != 4 {
		t.Errorf("one hop from the first switch: %v, %v; want the switch and its three neighbours", shape(f), err)
	}
	chain := []*device{{mad.NodeCA, 1, 1, map[uint8][2]int{1: {1, 1}}}}
	for i := 1; i < 90; i++ {
		chain = append(chain, &device{mad.NodeSwitch, uint64(1 + i), 2, map[uint8][2]int{1: {i - 1, 2}, 2: {i + 1, 1}}})
	}
	chain[1].links[1] = [2]int{0, 1}
	delete(chain[89].links, 2)
	f, faults, err := walk(t, Options{}, 9, inOrder, honest(chain)).Result()
	if err != nil || len(f.Nodes) != mad.MaxHops+1 || f.MaxHops != mad.MaxHops || len(faults) != 1 {
		t.Errorf("a chain of 90 nodes: %d nodes, %d hops, %v, %v; want those within the most hops and one fault", len(f.Nodes), f.MaxHops,
			faults, err)
	}
}

// Among nodes that are silent, lie, make up endless others, share GUIDs and form loops the walk ends within its limit
// of nodes, and its graph is consistent.
func TestWalkEndsAmongHostileNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		w := walk(t, Options{MaxNodes: 50}, rapid.IntRange(1, 64).Draw(t, "outstanding"), func(n int) int { return r.IntN(n) },
			func(q *Request) (data [mad.SMPDataLen]byte, err error) {
				if r.IntN(20) == 0 {
					return data, errSilent
				}
				for i := range data {
					data[i] = byte(r.Uint32())
				}
				switch q.Attribute {
				case mad.AttrNodeInfo:
					data[2] = byte(1 + r.IntN(3)) // the node's type
					clear(data[12:19])            // leave few different GUIDs
				case mad.AttrPortInfo:
					data[33] = byte(mad.PhysicalLinkUp)<<4 | 2
				}
				return data, nil
			})
		f, _, _ := w.Result()
		if len(f.Nodes) > 50 {
			t.Fatalf("%d nodes, want at most 50", len(f.Nodes))
		}
		for _, n := range f.Nodes {
			for i, p := range n.Ports {
				if p != nil && (p.Node != n || int(p.Num) != i || p.Remote != nil && p.Remote.Remote != p) {
					t.Fatal("the graph is not consistent: a port is not its node's, or a link does not lead back")
				}
			}
		}
	})
}

func TestWalkGivesUpOnEndlessNodes(t *testing.T) {
	for _, ports := range []uint8{2, 36, 254} {
		next := uint64(0)
		w := walk(t, Options{MaxNodes: 1000}, 64, inOrder, func(q *Request) (data [mad.SMPDataLen]byte, err error) {
			switch q.Attribute {
			case mad.AttrNodeInfo:
				next++
				copy(data[:], (&mad.NodeInfo{NodeType: mad.NodeSwitch, NumPorts: ports, NodeGUID: next}).Append(nil))
			case mad.AttrPortInfo:
				copy(data[:], (&mad.PortInfo{PortPhysicalState: mad.PhysicalLinkUp, LocalPortNum: 255}).Append(nil))
			}
			return data, nil
		})
		if f, _, err := w.Result(); err == nil || len(f.Nodes) != 1000 {
			t.Errorf("%d ports: %d nodes, %v; want 1000 and an error", ports, len(f.Nodes), err)
		}
	}
}

// Endless links that lead to no new node end the walk too.
func TestWalkGivesUpOnEndlessLinks(t *testing.T) {
	w := NewWalk(Options{})
	for range maxWaiting + 1 {
		w.ask(&Request{})
	}
	if r, _ := w.Next(); r != nil || !w.over() || w.err == nil {
		t.Errorf("the next request is %v, the error %v; want no request and an error", r, w.err)
	}
}

func TestWalkWithoutABeginning(t *testing.T) {
	w := walk(t, Options{}, 4, inOrder, func(*Request) (data [mad.SMPDataLen]byte, err error) { return data, errSilent })
	if _, faults, err := w.Result(); !errors.Is(err, errSilent) || len(faults) != 1 {
		t.Errorf("faults %v, error %v; want one and errSilent", faults, err)
	}
	w.Answer(0, nil, nil) // a late answer is ignored
	w.Answer(99, nil, nil)
}

func TestCacheRoundTrip(t *testing.T) {
	want, _, _ := walk(t, Options{}, 4, inOrder, honest(small())).Result()
	var b bytes.Buffer
	if err := want.WriteCache(&b); err != nil {
		t.Fatal(err)
	}
	got, err := ReadCache(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	paths := cmp.Transformer("WithoutPaths", func(f *Fabric) []string {
		var lines []string
		for _, n := range f.Nodes {
			lines = append(lines, fmt.Sprintf("%+v %s %d", n.Info, n.Description, len(n.Ports)))
			for _, p := range n.Ports {
				if p != nil && p.Remote != nil {
					lines = append(lines, fmt.Sprintf("  %d %x %+v -> %x %d", p.Num, p.GUID, p.Info, p.Remote.Node.Info.NodeGUID,
						p.Remote.Num))
				}
			}
		}
		return lines
	})
	if d := cmp.Diff(want, got, paths); d != "" || got.From.Info.NodeGUID != 0x100 || got.MaxHops != 3 {
		t.Error("the fabric from the cache differs (-want +got):\n", d)
	}
	for n := range b.Len() {
		if _, err := ReadCache(bytes.NewReader(b.Bytes()[:n])); err == nil {
			t.Fatalf("the first %d of %d bytes are read as a whole cache", n, b.Len())
		}
	}
}

func FuzzReadCache(f *testing.F) {
	fabric, _, _ := walk(f, Options{}, 4, inOrder, honest(small())).Result()
	var b bytes.Buffer
	if err := fabric.WriteCache(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ReadCache(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, n := range got.Nodes {
			for _, p := range n.Ports {
				if p != nil && p.Node != n {
					t.Fatal("a node has a port that belongs to another node")
				}
			}
		}
		if err := got.WriteCache(&bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	})
}

// over reports whether nothing is left to ask or to wait for.
func (w *Walk) over() bool { return len(w.asked) == 0 && (len(w.waiting) == 0 || w.err != nil) }
