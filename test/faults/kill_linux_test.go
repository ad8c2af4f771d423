package faults

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

const members = 10

var rounds = registry.ControlSet + `\Services\rounds`

// changes sets all members to the number of the round.
func changes(t *testing.T, n uint64) []registry.Change {
	t.Helper()
	p, err := registry.ParsePath(registry.Root + `\` + rounds)
	if err != nil {
		t.Fatal(err)
	}
	out := []registry.Change{{Kind: registry.DeleteKey, Key: p, Lenient: true}}
	for i := range members {
		out = append(out, registry.Change{Kind: registry.SetValue, Key: p, Value: registry.QWord(fmt.Sprint(i), n)})
	}
	return out
}

// roundOf returns the number of the round, which all members must have.
func roundOf(t *testing.T, r *registry.Registry) (first uint64) {
	t.Helper()
	for i := range members {
		p, _ := registry.ParsePath(registry.Root + `\` + rounds)
		v, _ := r.Get(p, fmt.Sprint(i))
		n, _ := v.Number()
		if i == 0 {
			first = n
		}
		if n != first {
			t.Fatalf("half a change: member 0 is %d, member %d is %d", first, i, n)
		}
	}
	return first
}

// A driver is killed again and again while its interface is asked for changes. Every change that was acknowledged is
// there, none is there in part, the events continue where they were, and the next driver reports what happened and
// runs as usual.
func TestKilledDriver(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "left"}, config.Adapter{Name: "right"})
	client := api.NewClient(cfg.Socket)
	var acknowledged atomic.Uint64
	lives := 6
	for life := range lives {
		p := start(t, cfg)
		reg, err := client.LoadRegistry(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n, ack := roundOf(t, reg), acknowledged.Load(); n != ack && n != ack+1 {
			t.Fatalf("life %d: round %d, acknowledged was %d", life, n, ack)
		} else {
			acknowledged.Store(n)
		}
		s, err := client.Status(t.Context())
		if err != nil || !s.Adapters[0].Up || !s.Adapters[1].Up || s.Volatile != "" {
			t.Fatalf("life %d: %+v, %v", life, s, err)
		}
		done, enough, least := make(chan struct{}), make(chan struct{}), 1+rand.N(8)
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				if i == least {
					close(enough)
				}
				n := acknowledged.Load() + 1
				if _, err := client.ChangeRegistry(t.Context(), changes(t, n), false); err != nil {
					return
				}
				acknowledged.Store(n)
			}
		}()
		select {
		case <-enough:
			time.Sleep(time.Duration(rand.N(4000)) * time.Microsecond) // at any moment of one of the next changes
		case <-done:
			t.Fatal("a change was refused")
		}
		p.kill()
		<-done
	}
	p := start(t, cfg)
	var page events.Page
	if err := client.Get(t.Context(), "/events", url.Values{}, &page); err != nil {
		t.Fatal(err)
	}
	p.stop()
	recovered := 0
	for i, r := range page.Events {
		if r.Sequence != uint64(i+1) {
			t.Errorf("event %d is number %d", i+1, r.Sequence)
		}
		if r.Symbol == "DriverRecovered" {
			recovered++
		}
	}
	if recovered != lives {
		t.Errorf("%d drivers say that the one before was killed; want %d", recovered, lives)
	}
	reg, err := registry.Open(cfg.State)
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	if n, ack := roundOf(t, reg), acknowledged.Load(); n != ack && n != ack+1 {
		t.Errorf("the file: round %d, acknowledged was %d", n, ack)
	}
}

// A second driver on the state directory of a running one is refused and spoils nothing. After the first has been
// killed the directory is free.
func TestTwoDrivers(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "left"})
	p := start(t, cfg)
	client := api.NewClient(cfg.Socket)
	if _, err := client.ChangeRegistry(t.Context(), changes(t, 7), false); err != nil {
		t.Fatal(err)
	}
	other := driverbed.Config(t, config.Adapter{Name: "other"})
	other.State = cfg.State
	second, up := run(t, other)
	if up || !strings.Contains(second.said.String(), fmt.Sprintf("another driver is running: process %d holds %s", p.cmd.Process.Pid,
		cfg.State)) {
		t.Errorf("up %v, %q", up, second.said.String())
	}
	if second.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ends with %v", second.cmd.ProcessState)
	}
	reg, err := client.LoadRegistry(t.Context())
	if err != nil || roundOf(t, reg) != 7 {
		t.Errorf("the first driver: %v", err)
	}
	p.kill()
	start(t, other).stop()
}
