package driver

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// soakFor returns how long the soak lasts: SOFTVPI_SOAK, such as 1h, or a few seconds. Its faults follow from the seed.
func soakFor(t *testing.T) (d time.Duration, seed uint64) {
	d, seed = 5*time.Second, 1
	if s := os.Getenv("SOFTVPI_SOAK"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
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

// TestSoak: random faults in adapters under traffic, of both generations and on both paths. Each is found, its adapter is restarted, and
// its programs go on with data that is right; a program on adapters without faults keeps its one connection. What the process holds
// does not grow with the number of faults. goleak looks at what is left in the end.
func TestSoak(t *testing.T) {
	systemtest.Mark(t)
	last, seed := soakFor(t)
	cfg := fourAdapters(t)
	more := loopback.Pair()
	cfg.Adapters = append(cfg.Adapters, config.Adapter{Name: "calm", Address: more[0]}, config.Adapter{Name: "quiet", Address: more[1]})
	cfg.Adapters[2].Path, cfg.Adapters[3].Path = "auto", "auto"
	cfg.Adapters[0].Generation = "mlx4"
	d := start(t, cfg)
	defer stop(t, d)
	if why := d.NoAttach(); why != "" {
		t.Skip(why)
	}
	t.Run("", func(t *testing.T) {
		var pairs [3]*talker
		for i := range pairs {
			pairs[i] = talk(t, cfg.Socket, cfg.Adapters[2*i].Address, cfg.Adapters[2*i+1].Address, 7000)
		}
		for i := range 4 {
			quick(t, d, cfg.Adapters[i].Name)
		}
		r := rand.New(rand.NewPCG(seed, 0))
		calm := pairs[2].again.Load()
		counts := map[string]int{}
		var before uint64
		var threads, files int
		n, made := 0, "none"
		defer func() {
			if t.Failed() {
				t.Log("after ", made)
			}
		}()
		for end := time.Now().Add(last); time.Now().Before(end) || n < 3; n++ {
			i := r.IntN(4)
			fault := []string{"wire", "completions", "receive", "send", "descriptor", "events", "loop", "panic", faultCommand}[r.IntN(9)]
			if i >= 2 && fault != "loop" && fault != "panic" && fault != "receive" && fault != "descriptor" && fault != faultCommand {
				fault = "panic" // nothing else is noticed by programs that need no packets
			}
			counts[fault]++
			made = fmt.Sprintf("fault %d, %s of adapter %d", n, fault, i)
			was := restarts(d)
			if err := d.InjectFault(api.FaultRequest{Adapter: cfg.Adapters[i].Name, Fault: fault}); err != nil {
				t.Fatal(made, ": ", err)
			}
			d.host.Wake()
			answered := func() {}
			if fault == faultCommand {
				answered = asks(t, cfg, i)
			}
			await.Eventually(t, "a restart after "+made, func() bool {
				if d.healingStatus(i).Stopped { // five panics in a row
					if err := d.RestartAdapter(cfg.Adapters[i].Name); err != nil {
						t.Fatal(err)
					}
					return true
				}
				return restarts(d) > was
			})
			answered()
			for _, k := range pairs {
				k.proceeds(t, 2)
			}
			if n == 2 {
				before, threads, files = held(), runtime.NumGoroutine(), descriptors(t)
			}
		}
		if pairs[2].again.Load() != calm {
			t.Error("the connection of adapters without faults has ended")
		}
		for i := 4; i < 6; i++ {
			if d.healingStatus(i).Restarts != 0 {
				t.Errorf("adapter %d was restarted", i)
			}
		}
		after := held()
		t.Logf("%d faults with seed %d: %v; %d, %d and %d messages of %d bytes; after three faults and in the end: %d and %d KB, "+
			"%d and %d goroutines, %d and %d descriptors", n, seed, counts, pairs[0].rounds.Load(), pairs[1].rounds.Load(), pairs[2].rounds.Load(),
			message, before>>10, after>>10, threads, runtime.NumGoroutine(), files, descriptors(t))
		// Programs that open an adapter again have more of both for a moment than those that talk.
		await.Eventually(t, "goroutines and descriptors that are no more than after the first faults", func() bool {
			return runtime.NumGoroutine() <= threads+spare && descriptors(t) <= files+spare
		})
		if most := before*3/2 + 16<<20; after > most {
			t.Errorf("the process holds %d bytes, %d after the first faults", after, before)
		}
	})
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

// restarts returns how often adapters were restarted.
func restarts(d *Driver) (n uint64) {
	for i := range d.running {
		n += d.healingStatus(i).Restarts
	}
	return n
}

// held returns the bytes of the heap that are in use. What has a finalizer, as files have, outlives a collection.
func held() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
