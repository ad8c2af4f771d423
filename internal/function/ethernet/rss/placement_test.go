package rss

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// machine has two groups with a node each: 0.0 to 0.3 on node 0, 1.0 to 1.3 on node 1.
func machine() (list []Processor) {
	for i := range 8 {
		list = append(list, Processor{Group: i / 4, Number: i % 4, Node: i / 4})
	}
	return list
}

func TestChoose(t *testing.T) {
	all := Placement{MaxNumber: 63, MaxProcessors: 8, Queues: 8, Node: NoNode, Profile: Closest}
	with := func(change func(p *Placement)) Placement {
		p := all
		change(&p)
		return p
	}
	for _, c := range []struct {
		name string
		p    Placement
		want []string // group.number
	}{
		{"all", all, []string{"0.0", "0.1", "0.2", "0.3", "1.0", "1.1", "1.2", "1.3"}},
		{"*MaxRSSProcessors", with(func(p *Placement) { p.MaxProcessors = 3 }), []string{"0.0", "0.1", "0.2"}},
		{"*NumRSSQueues", with(func(p *Placement) { p.Queues = 2 }), []string{"0.0", "0.1"}},
		{"*RssBaseProcNumber", with(func(p *Placement) { p.BaseNumber, p.MaxProcessors = 2, 4 }), []string{"0.2", "0.3", "1.0", "1.1"}},
		{"*RssBaseProcGroup", with(func(p *Placement) { p.BaseGroup, p.BaseNumber = 1, 1 }), []string{"1.1", "1.2", "1.3"}},
		{"*RssMaxProcNumber", with(func(p *Placement) { p.MaxNumber = 1 }), []string{"0.0", "0.1", "1.0", "1.1"}},
		{"*NumaNodeID", with(func(p *Placement) { p.Node, p.MaxProcessors = 1, 5 }), []string{"1.0", "1.1", "1.2", "1.3", "0.0"}},
		{"*RSSProfile 3: nodes take turns", with(func(p *Placement) { p.Profile, p.MaxProcessors = NUMA, 4 }),
			[]string{"0.0", "1.0", "0.1", "1.1"}},
		{"*RSSProfile 4, from the adapter's node", with(func(p *Placement) { p.Profile, p.Node, p.MaxProcessors = NUMAStatic, 1, 3 }),
			[]string{"1.0", "0.0", "1.1"}},
		{"a base beyond the machine", with(func(p *Placement) { p.BaseGroup = 7 }), []string{"0.0"}},
	} {
		var got []string
		for _, x := range c.p.Choose(machine()) {
			got = append(got, string(rune('0'+x.Group))+"."+string(rune('0'+x.Number)))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	if got := all.Choose(nil); len(got) != 1 {
		t.Errorf("a machine without processors has %d queues, want 1", len(got))
	}
}

// TestTable: 128 entries take turns, and a table of another size, a power of two, goes by the low bits of the hash.
func TestTable(t *testing.T) {
	var x Table
	x.Spread(3)
	if n := len(x.Entries()); n != 128 || x.Queue(0) != 0 || x.Queue(1) != 1 || x.Queue(127+128*5) != 127%3 {
		t.Errorf("%d entries, queues %d, %d, %d", n, x.Queue(0), x.Queue(1), x.Queue(127))
	}
	if err := x.Set([]uint8{1, 0}, 2); err != nil || x.Queue(2) != 1 || x.Queue(3) != 0 {
		t.Errorf("%v, queues %d and %d", err, x.Queue(2), x.Queue(3))
	}
	for want, list := range map[string][]uint8{
		"number of entries is 0, want a power of two, up to 128":   nil,
		"number of entries is 3, want a power of two, up to 128":   {0, 0, 0},
		"number of entries is 256, want a power of two, up to 128": make([]uint8, 256),
		"entry 1 is 2, want 0 to 1":                                {0, 2},
	} {
		if err := x.Set(list, 2); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if len(x.Entries()) != 2 {
		t.Error("a refused table has changed something")
	}
}

// TestBalance: entries move from the busiest queue to others while that makes both more equal; one flow stays where it is.
func TestBalance(t *testing.T) {
	var x Table
	x.Spread(4)
	for entry, n := range map[uint32]int{0: 400, 4: 300, 8: 300, 12: 200} { // all for queue 0
		for range n {
			x.Count(entry)
		}
	}
	if moved := x.Balance(4); moved == 0 {
		t.Fatal("nothing moved")
	}
	queues := map[int]bool{}
	for _, entry := range []uint32{0, 4, 8, 12} {
		queues[x.Queue(entry)] = true
	}
	if len(queues) < 3 {
		t.Errorf("four busy entries are on %d queues", len(queues))
	}
	for range 1000 {
		x.Count(0)
	}
	if moved := x.Balance(4); moved != 0 {
		t.Errorf("one flow alone was moved %d times", moved)
	}
	rapid.Check(t, func(t *rapid.T) {
		var x Table
		n := rapid.IntRange(1, 64).Draw(t, "queues")
		x.Spread(n)
		frames := rapid.SliceOfN(rapid.Uint32Range(0, 300), 128, 128).Draw(t, "frames")
		most := func() (most uint32) {
			load := make([]uint32, n)
			for i, f := range frames {
				load[x.Queue(uint32(i))] += f
			}
			for _, l := range load {
				most = max(most, l)
			}
			return most
		}
		before := most()
		copy(x.frames[:], frames)
		x.Balance(n)
		if after := most(); after > before {
			t.Fatalf("the busiest queue has %d frames after, %d before", after, before)
		}
		for i, q := range x.Entries() {
			if int(q) >= n {
				t.Fatalf("entry %d is for queue %d of %d", i, q, n)
			}
		}
	})
}

// TestSufficient: the Conservative profile has one queue for little traffic, and as many as there are for much.
func TestSufficient(t *testing.T) {
	var x Table
	x.Spread(1)
	for frames, want := range map[uint32]int{0: 1, enough - 1: 1, enough: 2, 100 * enough: 8} {
		x.frames[3] = frames
		if got := x.Sufficient(8); got != want {
			t.Errorf("%d frames: %d queues, want %d", frames, got, want)
		}
	}
}
