package lan

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric/ethernet"
)

// bundled returns a host of two links, a0 and a1, which are a bundle at switch s, and a host b: at s too or, with far, at a switch t to
// which two parallel links lead.
func bundled(t *testing.T, far bool) *bench {
	t.Helper()
	port := ethernet.PortConfig{Rate: 1e9, Trust: ethernet.TrustDSCP, PVID: 1}
	var cfg Config
	for _, name := range []string{"a0", "a1", "b"} {
		w := ethernet.PortConfig{Rate: 1e9, Trust: ethernet.TrustDSCP}
		cfg.Nodes = append(cfg.Nodes, Node{Name: name, Station: &ethernet.StationConfig{Wire: w, Waiting: 1 << 20}})
	}
	cfg.Timing = true
	cfg.Nodes = append(cfg.Nodes, Node{Name: "s", Bundles: [][]int{{0, 1}}, Ports: []ethernet.PortConfig{port, port, port, port}},
		Node{Name: "t", Ports: []ethernet.PortConfig{port, port, port}, Switch: ethernet.Config{Seed: 7}})
	at := ethernet.End{Node: 3, Port: 2}
	if far {
		at = ethernet.End{Node: 4, Port: 2}
		cfg.Links = append(cfg.Links, Link{ethernet.End{Node: 3, Port: 2}, ethernet.End{Node: 4}},
			Link{ethernet.End{Node: 3, Port: 3}, ethernet.End{Node: 4, Port: 1}})
	} else {
		cfg.Nodes = cfg.Nodes[:4]
	}
	cfg.Links = append(cfg.Links, Link{ethernet.End{Node: 0}, ethernet.End{Node: 3}},
		Link{ethernet.End{Node: 1}, ethernet.End{Node: 3, Port: 1}},
		Link{ethernet.End{Node: 2}, at})
	n, err := New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, n, 0}
}

// flow is a UDP packet of a flow.
func flow(from, to, port int) []byte {
	p := packet(from, to, 0, 200)
	binary.BigEndian.PutUint16(p[34:], uint16(port))
	binary.BigEndian.PutUint16(p[36:], 4791)
	return p
}

// The links of a host that are a bundle at its switch share what goes to it by flow: each frame arrives once, those of a flow over one
// link and in order, what goes everywhere by one of them, and what one of them sent not by the other. With the cable of one out all goes
// over the other, and what was heard there is not forgotten. So it is at one switch, and over parallel links between two.
func TestBundleTowardsAHost(t *testing.T) {
	const flows = 64
	for _, far := range []bool{false, true} {
		t.Run(fmt.Sprint("far ", far), func(t *testing.T) {
			b := bundled(t, far)
			a0, a1, other := b.plug("a0"), b.plug("a1"), b.plug("b")
			wait := func() (x, y, z int) {
				b.to(b.now.Add(5 * time.Millisecond))
				x, _ = b.drain(a0)
				y, _ = b.drain(a1)
				z, _ = b.drain(other)
				return x, y, z
			}
			a1.Transmit(b.now, packet(1, 99, 0, 64)) // to nobody: it goes everywhere, but back
			if x, y, z := wait(); x != 0 || y != 0 || z != 1 {
				t.Errorf("of a frame of the bundle %d, %d and %d copies", x, y, z)
			}
			other.Transmit(b.now, packet(2, 99, 0, 64))
			if x, y, z := wait(); x+y != 1 || z != 0 {
				t.Errorf("of a frame to everybody %d, %d and %d copies", x, y, z)
			}
			send := func() {
				for i := range flows {
					other.Transmit(b.now, flow(2, 1, 50_000+i))
				}
			}
			send()
			x, y, z := wait()
			if x+y != flows || x < flows/5 || y < flows/5 || z != 0 {
				t.Errorf("of %d flows %d and %d come over the links, %d back", flows, x, y, z)
			}
			if send(); true {
				if again, _, _ := wait(); again != x {
					t.Errorf("%d of the flows take the first link, and the next time %d", x, again)
				}
			}
			b.do("unlink a1")
			send()
			if x, y, _ := wait(); x != flows || y != 0 {
				t.Errorf("with the second cable out %d and %d", x, y)
			}
			b.do("relink a1")
			b.do("unlink s[1]")
			send()
			if x, y, _ := wait(); x != 0 || y != flows {
				t.Errorf("with the first cable out %d and %d", x, y)
			}
			a1.Transmit(b.now, packet(1, 2, 0, 64))
			if _, _, z := wait(); z != 1 {
				t.Errorf("%d frames of the bundle arrive", z)
			}
		})
	}
}

// Switches in a ring, and two links between the same two, which no spanning tree opens, are no loop for what goes everywhere: each host
// gets one copy, and none waits anywhere afterwards.
func TestLoopsDoNotMultiplyFrames(t *testing.T) {
	b := ring(t, 5, nil)
	var jacks []*Jack
	for i := range 5 {
		jacks = append(jacks, b.plug(fmt.Sprintf("h%d", i)))
	}
	jacks[2].Transmit(b.now, packet(2, 99, 0, 64))
	b.to(b.now.Add(time.Second))
	for i, j := range jacks {
		want := 1
		if i == 2 {
			want = 0
		}
		if n, _ := b.drain(j); n != want {
			t.Errorf("host %d gets %d copies", i, n)
		}
	}
	if n := b.fabric.Store.Frames(); n != 0 {
		t.Errorf("%d frames are still on their way", n)
	}
}
