package scale

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// Traffic of every operation between two programs of a driver, while the links are impaired and the path changes
// underneath: nothing is lost, reordered or altered.
func TestMixedTrafficOverChangingLinks(t *testing.T) {
	beside(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := startDriver(t, "auto")
	server, client := d.attach(t, 0), d.attach(t, 1)
	args := mixedArgs(size(8, 3))
	server.call(t, "endpoint", args, nil)
	args.Register = true
	client.call(t, "endpoint", args, nil)
	pair(t, server, client)

	seconds := float64(size(60, 2))
	file, enough := goOn(t)
	run := converse(t, server, client, askArgs{Seconds: seconds, Seed: seed, While: file})
	changes := d.change(t, seed, seconds, run, enough)
	did := run.end()
	var lost, local, direct, wire uint64
	for _, a := range d.Status().Adapters {
		lost += a.Link.ImpairedLost
		local += a.Counters["Local messages"]
		direct += a.Counters["Direct messages"]
		wire += a.Counters["RDMA Outbound Packets"]
	}
	t.Logf("%d operations, %d messages; %d changes of path or impairment; %d messages took the local path, %d the direct one, %d packets the wire, %d of them were lost on purpose",
		did.Operations, did.Messages, changes, local, direct, wire, lost)
	if local == 0 || direct == 0 || wire == 0 || lost == 0 {
		t.Error("the traffic did not see all paths and losses")
	}
}

// change changes impairments and paths until the traffic is done, and says when the traffic has met enough to end. In the last fifth of
// the time there are no impairments, so that the traffic ends soon.
func (d *testDriver) change(t *testing.T, seed uint64, seconds float64, run *conversation, enough func()) (changes int) {
	defer enough()
	admin := driver.NewAdmin(d.Config().Socket)
	r := rand.New(rand.NewPCG(seed, 2))
	set := func(adapter, path string, words ...string) {
		changes++
		q := driver.LinkRequest{Adapter: adapter, Path: &path}
		if len(words) > 0 {
			q.Impairment = &words
		}
		if err := admin.SetLink(t.Context(), q); err != nil {
			t.Errorf("link set %s: %v", adapter, err)
		}
	}
	all := func(rate string) []string {
		return []string{"loss=" + rate, "reorder=" + rate, "duplicate=" + rate, "corrupt=" + rate, "delay=100us", "jitter=50us"}
	}
	// Each path, and a loss, until the traffic has met it; then anything.
	for _, c := range []struct {
		path string
		took func(*driver.AdapterStatus) uint64
		with []string
	}{
		{"auto", func(a *driver.AdapterStatus) uint64 { return a.Counters["Direct messages"] }, []string{"none"}},
		{"local", func(a *driver.AdapterStatus) uint64 { return a.Counters["Local messages"] }, []string{"none"}},
		{"wire", func(a *driver.AdapterStatus) uint64 { return a.Link.ImpairedLost }, all("5%")},
	} {
		for _, adapter := range []string{"left", "right"} {
			set(adapter, c.path, c.with...)
		}
		await.Until(func() bool {
			s := d.Status()
			return run.ended() || c.took(&s.Adapters[0])+c.took(&s.Adapters[1]) > 0
		})
	}
	enough()
	calm := time.After(time.Duration(seconds * 0.8 * float64(time.Second)))
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-run.done:
			return changes
		case <-calm:
			set("left", "auto", "none")
			set("right", "auto", "none")
			<-run.done
			return changes
		case <-tick.C:
		}
		for _, adapter := range []string{"left", "right"} {
			switch r.IntN(6) {
			case 0:
				set(adapter, "auto")
			case 1:
				set(adapter, "wire")
			case 2:
				set(adapter, "auto", "none")
			case 3:
				set(adapter, "wire", all("1%")...)
			case 4:
				set(adapter, "wire", all("5%")...)
			case 5:
				set(adapter, "local")
			}
		}
	}
}
