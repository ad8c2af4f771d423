package vport

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
	"pgregory.net/rapid"
)

// plain is an adapter of which a virtual switch is a user, with so many queues.
func plain(queues int) Config {
	return Config{VMQ: true, PreferVMQ: true, VLANFiltering: true, Queues: queues, MACs: Most, VLANs: 125}
}

func made(t *testing.T, cfg Config) *Queues {
	t.Helper()
	q, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// of is a port without a VLAN, unless it has some.
func of(weight, mac int, vlans ...uint16) Port {
	if vlans == nil {
		vlans = []uint16{0}
	}
	return Port{Weight: weight, MAC: eth.MAC{2, 0, 0, 0, 0, byte(mac)}, VLANs: vlans}
}

func set(t *testing.T, q *Queues, name string, p Port) {
	t.Helper()
	if err := q.Set(name, p); err != nil {
		t.Fatal(err)
	}
}

// check compares the queues of ports, "a1 b0", with what they are to be.
func check(t *testing.T, q *Queues, want string) {
	t.Helper()
	var got []string
	for _, w := range strings.Fields(want) {
		n, why, ok := q.Queue(w[:1])
		if !ok || (n == 0) != (why != "") {
			t.Errorf("port %s: queue %d because %q, %t", w[:1], n, why, ok)
		}
		got = append(got, fmt.Sprint(w[:1], n))
	}
	if s := strings.Join(got, " "); s != want {
		t.Errorf("queues %s, want %s", s, want)
	}
}

// TestQueues_GivenBack: whoever comes first has a queue (MaxNumVmqs), nobody loses one to another, and one that is given back is for the
// heaviest of those that wait.
func TestQueues_GivenBack(t *testing.T) {
	q := made(t, plain(2))
	set(t, q, "a", of(1, 1))
	set(t, q, "b", of(50, 2))
	set(t, q, "c", of(10, 3))
	set(t, q, "d", of(100, 4))
	check(t, q, "a1 b2 c0 d0")
	q.Remove("a")
	check(t, q, "b2 c0 d1")
	set(t, q, "d", of(0, 4))
	check(t, q, "b2 c1 d0")
	set(t, q, "d", of(100, 4))
	check(t, q, "b2 c1 d0")
	q.Remove("x")
	q.Remove("b")
	check(t, q, "c1 d2")
}

// TestQueues_Change: a port that has another address keeps its queue (its frames are known by the new one), unless nothing is left of
// what its new filters take.
func TestQueues_Change(t *testing.T) {
	cfg := plain(2)
	cfg.VLANs = 1
	q := made(t, cfg)
	set(t, q, "a", of(1, 1))
	set(t, q, "b", of(1, 2, 7))
	set(t, q, "c", of(100, 3))
	set(t, q, "a", of(1, 9))
	check(t, q, "a1 b2 c0")
	if f := q.Filters("a"); len(f) != 1 || f[0].MAC[5] != 9 {
		t.Errorf("filters %v after the address has changed", f)
	}
	set(t, q, "a", of(1, 9, 8))
	check(t, q, "a0 b2 c1")
	if f := q.Filters("a"); f != nil {
		t.Errorf("filters %v without a queue", f)
	}
}

// TestQueues_Keys: each key that takes queues away says so by its name.
func TestQueues_Keys(t *testing.T) {
	for _, c := range []struct {
		key    string
		change func(*Config)
		ports  []Port
		want   string
	}{
		{"*VMQ", func(c *Config) { c.VMQ = false }, []Port{of(1, 1)}, "a0"},
		{"*RssOrVmqPreference", func(c *Config) { c.PreferVMQ = false }, []Port{of(1, 1)}, "a0"},
		{"VmqWeight", func(*Config) {}, []Port{of(0, 1), of(1, 2)}, "a0 b1"},
		{"MaxNumVmqs", func(c *Config) { c.Queues = 1 }, []Port{of(1, 1), of(1, 2)}, "a1 b0"},
		{"MaxNumMacAddrFilters", func(c *Config) { c.MACs = 1 }, []Port{of(1, 1), of(1, 1, 5), of(1, 2)}, "a1 b2 c0"},
		{"MaxNumVlanFilters", func(c *Config) { c.VLANs = 1 }, []Port{of(1, 1), of(1, 2, 5), of(1, 3, 5), of(1, 4, 6), of(1, 5)},
			"a1 b2 c3 d0 e4"},
		{"filter for address", func(c *Config) { c.VLANFiltering = false }, []Port{of(1, 1, 5), of(1, 1, 6)}, "a1 b0"},
	} {
		t.Run(c.key, func(t *testing.T) {
			cfg := plain(Most)
			c.change(&cfg)
			q := made(t, cfg)
			var causes []string
			for i, p := range c.ports {
				name := string(rune('a' + i))
				set(t, q, name, p)
				if _, why, _ := q.Queue(name); why != "" {
					causes = append(causes, string(why))
				}
			}
			check(t, q, c.want)
			if len(causes) != 1 || !strings.Contains(causes[0], c.key) {
				t.Errorf("causes %q, want one that names %s", causes, c.key)
			}
		})
	}
}

// TestQueues_Filtering: with *VMQVlanFiltering 0 VLANs take no filters, and an address has one queue.
func TestQueues_Filtering(t *testing.T) {
	cfg := plain(Most)
	cfg.VLANFiltering, cfg.VLANs = false, 1
	q := made(t, cfg)
	set(t, q, "a", of(1, 1, 5))
	set(t, q, "b", of(1, 2, 6, 7, 8))
	check(t, q, "a1 b2")
	if queues, macs, vlans := q.Used(); queues != 2 || macs != 2 || vlans != 0 {
		t.Errorf("%d queues, %d addresses, %d VLANs used", queues, macs, vlans)
	}
}

// TestQueues_Invalid: what cannot be is refused by its field, and changes nothing.
func TestQueues_Invalid(t *testing.T) {
	for _, n := range []int{0, 128} {
		for field, cfg := range map[string]Config{
			"MaxNumVmqs": {Queues: n, MACs: 1, VLANs: 1}, "MaxNumMacAddrFilters": {Queues: 1, MACs: n, VLANs: 1},
			"MaxNumVlanFilters": {Queues: 1, MACs: 1, VLANs: n},
		} {
			var bad *FieldError
			if _, err := New(cfg); !errors.As(err, &bad) || bad.Field != field {
				t.Errorf("%s=%d: %v", field, n, err)
			}
		}
	}
	q := made(t, plain(1))
	set(t, q, "a", of(1, 1))
	for field, p := range map[string]Port{
		"VmqWeight": of(101, 1), "MAC": {Weight: 1, MAC: eth.MAC{1}, VLANs: []uint16{0}}, "VLANs": {Weight: 1, MAC: eth.MAC{2}},
		"VLAN": of(1, 1, 4095),
	} {
		var bad *FieldError
		if err := q.Set("a", p); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	check(t, q, "a1")
}

// TestQueues_Property: whatever comes, goes and changes, a queue is one port's, no limit is passed, nobody loses a queue by what another
// does, and nobody waits for what is free.
func TestQueues_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{VMQ: rapid.IntRange(0, 9).Draw(t, "vmq") > 0, PreferVMQ: true, VLANFiltering: rapid.Bool().Draw(t, "filtering"),
			Queues: rapid.IntRange(1, 5).Draw(t, "queues"), MACs: rapid.IntRange(1, 5).Draw(t, "MACs"),
			VLANs: rapid.IntRange(1, 4).Draw(t, "VLANs")}
		q, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := rapid.StringMatching("[a-h]").Draw(t, "port")
			had := map[string]int{}
			for _, p := range q.ports {
				had[p.name] = p.queue
			}
			if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				q.Remove(name)
			} else {
				p := of(rapid.IntRange(0, 3).Draw(t, "weight"), rapid.IntRange(1, 7).Draw(t, "MAC"),
					rapid.SliceOfN(rapid.Uint16Range(0, 5), 1, 3).Draw(t, "VLANs")...)
				p.AnyVLAN = rapid.IntRange(0, 5).Draw(t, "any") == 0
				if err := q.Set(name, p); err != nil {
					t.Fatal(err)
				}
			}
			invariants(t, q, name, had)
		}
	})
}

// invariants checks what holds after a port has changed, when ports had these queues before.
func invariants(t *rapid.T, q *Queues, changed string, had map[string]int) {
	numbers, macs, vlans, filters := map[int]bool{}, map[eth.MAC]bool{}, map[uint16]bool{}, map[Filter]bool{}
	all := newTable(&q.cfg)
	for _, p := range q.ports {
		if p.name != changed && had[p.name] != 0 && p.queue != had[p.name] {
			t.Fatalf("%s changed, and %s has queue %d after %d", changed, p.name, p.queue, had[p.name])
		}
		if p.queue == 0 {
			continue
		}
		if numbers[p.queue] || p.queue > q.cfg.Queues || p.Weight == 0 || !q.cfg.VMQ {
			t.Fatalf("%s, of weight %d, has queue %d of %d, taken: %t", p.name, p.Weight, p.queue, q.cfg.Queues, numbers[p.queue])
		}
		numbers[p.queue], macs[p.MAC] = true, true
		for _, f := range q.Filters(p.name) {
			if filters[f] {
				t.Fatalf("filter %v is there twice", f)
			}
			if filters[f] = true; f.VLAN != 0 {
				vlans[f.VLAN] = true
			}
		}
		all.add(p)
	}
	if len(macs) > q.cfg.MACs || len(vlans) > q.cfg.VLANs {
		t.Fatalf("%d addresses of %d, %d VLANs of %d", len(macs), q.cfg.MACs, len(vlans), q.cfg.VLANs)
	}
	if n, m, v := q.Used(); n != len(numbers) || m != len(macs) || v != len(vlans) {
		t.Fatalf("%d, %d and %d used, want %d, %d and %d", n, m, v, len(numbers), len(macs), len(vlans))
	}
	if i := slices.IndexFunc(q.ports, func(p *port) bool { return p.queue == 0 && all.refuse(p) == "" }); i >= 0 {
		t.Fatalf("%s waits, and may have a queue", q.ports[i].name)
	}
}
