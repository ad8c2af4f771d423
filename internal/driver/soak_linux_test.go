package driver

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/healing"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// soakFor returns how long the soak lasts: SOFTVPI_SOAK, such as 1h; 0: for fewFaults. Its faults follow from the seed.
func soakFor(t *testing.T) (d time.Duration, seed uint64) {
	seed = 1
	if s := os.Getenv("SOFTVPI_SOAK"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil || d <= 0 {
			t.Fatalf("SOFTVPI_SOAK is %q; allowed: a duration such as 1h", s)
		}
	}
	if s := os.Getenv("SOFTVPI_SOAK_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatalf("SOFTVPI_SOAK_SEED is %q; allowed: a number", s)
		}
	}
	return d, seed
}

// fewFaults is how many faults there are without SOFTVPI_SOAK, the first ones among them.
const fewFaults = 5

// soakFault is a fault of an adapter.
type soakFault struct {
	adapter int
	fault   string
}

// firstFaults begin every soak: one of each kind of port that others have in their own ways.
var firstFaults = []soakFault{{6, "host"}, {8, "panic"}, {0, faultCommand}}

// soakFaults are what goes wrong in the adapters of a soak. Between 2 and 3, which need no packets, programs notice nothing else.
func soakFaults() (list []soakFault) {
	local := []string{"loop", "panic", "receive", "descriptor", faultCommand}
	for i, faults := range map[int][]string{
		0: {"wire", "completions", "receive", "send", "descriptor", "events", "loop", "panic", faultCommand},
		1: {"wire", "completions", "receive", "send", "descriptor", "events", "loop", "panic", faultCommand},
		2: local, 3: local,
		6: {"host", "host", "wire", "panic", "loop"}, 7: {"wire", "panic", "loop"},
		8: {"panic", "loop", faultCommand}, 9: {"panic", "loop", faultCommand},
	} {
		for _, f := range faults {
			list = append(list, soakFault{i, f})
		}
	}
	slices.SortFunc(list, func(a, b soakFault) int { return cmp.Or(a.adapter-b.adapter, strings.Compare(a.fault, b.fault)) })
	return list
}

// soak is a driver under traffic, in which things go wrong.
type soak struct {
	*Driver
	cfg       config.Config
	near, far *guest // of adapters 6 and 7
	pairs     []*talker
}

// soakConfig has pairs of adapters: 0 and 1 over packets, 2 and 3 on the local path, 4 and 5 without faults, 6 and 7 at a switch, with
// guests, 8 and 9 at an InfiniBand fabric.
func soakConfig(t *testing.T) (cfg config.Config, near, far *guest) {
	t.Helper()
	cfg = fourAdapters(t)
	more := loopback.Pair()
	cfg.Adapters = append(cfg.Adapters, config.Adapter{Name: "calm", Address: more[0]}, config.Adapter{Name: "quiet", Address: more[1]})
	cfg.Adapters[2].Path, cfg.Adapters[3].Path = "auto", "auto"
	cfg.Adapters[0].Generation = "mlx4"
	guests := [2]*guest{}
	for i, name := range []string{"port", "peer"} {
		one := config.Config{Adapters: []config.Adapter{{Name: name, Link: config.LinkSwitch, Path: "wire",
			Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), Wire: config.Wire{Switch: "s", Prefix: 24, LinkMTU: 9000}}}}
		guests[i] = withGuest(t, &one, fmt.Sprintf("02:00:00:00:00:%02x", i+1))
		cfg.Adapters = append(cfg.Adapters, one.Adapters...)
	}
	for i, name := range []string{"ib0", "ib1"} {
		cfg.Adapters = append(cfg.Adapters, config.Adapter{Name: name, Link: config.LinkCable, Path: "wire",
			Address: netip.AddrFrom4([4]byte{10, 99, 0, byte(i + 1)})})
	}
	return cfg, guests[0], guests[1]
}

// say sends a frame from the one guest to the other. A sensor that looks as often as it can may restart a function of a process that
// stands still for a moment: its host's socket is not there then, and the frame is lost as any other.
func (s *soak) say(payload string) {
	_, _ = s.far.WriteToUnix(s.far.frame(s.near.mac, payload), &net.UnixAddr{Name: s.far.path, Net: "unixgram"})
}

// suffer makes a fault happen, and waits until it is found and mended, and all programs have got on.
func (s *soak) suffer(t *testing.T, n int, f soakFault) {
	t.Helper()
	name := s.cfg.Adapters[f.adapter].Name
	made := fmt.Sprintf("fault %d, %s of %s", n, f.fault, name)
	defer func() {
		if t.Failed() {
			t.Log("after ", made)
		}
	}()
	was := s.healingStatus(f.adapter).Restarts
	if err := s.InjectFault(api.FaultRequest{Adapter: name, Fault: f.fault}); err != nil {
		t.Fatal(made, ": ", err)
	}
	s.host.Wake()
	answered := func() {}
	if f.fault == faultCommand {
		answered = asks(t, s.cfg, f.adapter)
	}
	await.Eventually(t, "a restart after "+made, func() bool {
		if f.fault == "host" {
			s.say("nobody reads this")
		}
		h := s.healingStatus(f.adapter)
		if h.Stopped { // more than five panics in a row
			if err := s.RestartAdapter(name); err != nil {
				t.Fatal(err)
			}
			return true
		}
		return h.Restarts > was
	})
	answered()
	for _, k := range s.pairs {
		k.proceeds(t, 2)
	}
	if f.adapter == 6 || f.adapter == 7 {
		said := fmt.Sprintf("after fault %d", n)
		s.near.gets(t, said, func() { s.say(said) })
	}
	for _, g := range []*guest{s.near, s.far} { // a guest that reads nothing would be a fault, too
		if err := g.SetReadDeadline(time.Time{}); err != nil { // of gets
			t.Fatal(err)
		}
		g.drain(t)
	}
}

// TestSoak: random faults in adapters under traffic, of both generations, on both paths, with Ethernet functions and on an InfiniBand
// fabric. Each is found, its adapter is restarted, and its programs go on with data that is right; a program on adapters without faults
// keeps its one connection. What the process holds does not grow with the number of faults. goleak looks at what is left in the end.
func TestSoak(t *testing.T) {
	systemtest.Mark(t)
	last, seed := soakFor(t)
	cfg, near, far := soakConfig(t)
	d := start(t, cfg)
	defer stop(t, d)
	if why := d.NoAttach(); why != "" {
		t.Skip(why)
	}
	t.Run("", func(t *testing.T) {
		s := soak{Driver: d, cfg: cfg, near: near, far: far}
		for i := 0; i < len(cfg.Adapters); i += 2 {
			s.pairs = append(s.pairs, talk(t, cfg.Socket, cfg.Adapters[i].Address, cfg.Adapters[i+1].Address, 7000))
		}
		for i := range cfg.Adapters {
			if i != 4 && i != 5 {
				quick(t, d, cfg.Adapters[i].Name)
			}
		}
		all, r := soakFaults(), rand.New(rand.NewPCG(seed, 0))
		calm := s.pairs[2].again.Load()
		counts := map[string]int{}
		var first holdings
		n := 0
		tell := func(now holdings) {
			t.Logf("%d faults with seed %d: %v; %d messages of %d bytes were right; after three faults %v, now %v", n, seed, counts, s.messages(),
				message, first, now)
		}
		for end := time.Now().Add(last); n < fewFaults || time.Now().Before(end); {
			f := all[r.IntN(len(all))]
			if n < len(firstFaults) {
				f = firstFaults[n]
			}
			s.suffer(t, n, f)
			counts[f.fault]++
			if n++; n == len(firstFaults) {
				first = holds(t)
			} else if n%100 == 0 {
				tell(holds(t))
			}
		}
		if s.pairs[2].again.Load() != calm {
			t.Error("the connection of adapters without faults has ended")
		}
		for i := 4; i < 6; i++ {
			if d.healingStatus(i).Restarts != 0 {
				t.Errorf("adapter %d was restarted", i)
			}
		}
		after := holds(t)
		tell(after)
		// Programs that open an adapter again have more of both for a moment than those that talk.
		await.Eventually(t, "goroutines and descriptors that are no more than after the first faults", func() bool {
			return runtime.NumGoroutine() <= first.goroutines+spare && descriptors(t) <= first.descriptors+spare
		})
		if most := first.heap*3/2 + 16<<20; after.heap > most {
			t.Errorf("the process holds %v, after the first faults %v", after, first)
		}
	})
}

// TestPanic_Counters: after a panic in the engines of a port their counters begin at 0, those of other ports and of self-healing go on
// (docs/healing.md).
func TestPanic_Counters(t *testing.T) {
	systemtest.Mark(t)
	cfg := fourAdapters(t)
	d := start(t, cfg)
	defer stop(t, d)
	if why := d.NoAttach(); why != "" {
		t.Skip(why)
	}
	for i := 0; i < 4; i += 2 {
		t.Run("traffic", func(t *testing.T) { talk(t, cfg.Socket, cfg.Adapters[i].Address, cfg.Adapters[i+1].Address, 7000) })
	}
	usual(t, d, "left") // a panic is found at once, and nothing else is while this process stands still
	connections := func(i int) (n uint64) {
		c := d.host.Counters()[i]
		return c.CM.Accepted + c.CM.Initiated
	}
	right, near := connections(1), connections(2)
	if connections(0) == 0 || right == 0 || near == 0 {
		t.Fatalf("%d, %d and %d connections are counted", connections(0), right, near)
	}
	for n := uint64(1); n <= 2; n++ {
		if err := d.InjectFault(api.FaultRequest{Adapter: "left", Fault: "panic"}); err != nil {
			t.Fatal(err)
		}
		d.host.Wake()
		await.Eventually(t, "a restart", func() bool { return d.healingStatus(0).Restarts == n })
		if c := d.healing.counters(0); c.Restarts != n || c.Of(healing.Internal) != n {
			t.Errorf("after %d panics self-healing counts %+v", n, c)
		}
	}
	if n := connections(0); n != 0 {
		t.Errorf("%d connections are counted by new engines", n)
	}
	if connections(1) != right || connections(2) != near {
		t.Errorf("other ports count %d and %d connections, %d and %d before", connections(1), connections(2), right, near)
	}
}

// spare is how many more goroutines and descriptors programs may have at one time than at another.
const spare = 40

// descriptors returns how many files the process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// holdings is what the process has.
type holdings struct {
	heap                    uint64 // bytes in use
	goroutines, descriptors int
}

func (h holdings) String() string {
	return fmt.Sprintf("%d KB, %d goroutines, %d descriptors", h.heap>>10, h.goroutines, h.descriptors)
}

// holds returns what the process has. What has a finalizer, as files have, outlives a collection.
func holds(t *testing.T) holdings {
	t.Helper()
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return holdings{m.HeapInuse, runtime.NumGoroutine(), descriptors(t)}
}

// messages returns how many messages came back as they were sent.
func (s *soak) messages() (n uint64) {
	for _, k := range s.pairs {
		n += k.rounds.Load()
	}
	return n
}
