package server

import (
	"encoding/json"
	"net/http"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/softvpi/softvpi/internal/api"
)

// TestReadiness: a driver is ready if every enabled adapter passes packets.
func TestReadiness(t *testing.T) {
	up := api.AdapterStatus{Name: "up", Enabled: true, Up: true}
	for _, c := range []struct {
		name    string
		adapter api.AdapterStatus
		want    string // empty: ready
	}{
		{"up", up, ""},
		{"down", api.AdapterStatus{Name: "a", Enabled: true}, "the link is down"},
		{"disabled", api.AdapterStatus{Name: "a"}, ""},
		{"InfiniBand, active", api.AdapterStatus{Name: "a", Enabled: true, InfiniBand: &api.InfiniBandStatus{State: "Active"}}, ""},
		{"InfiniBand, not yet", api.AdapterStatus{Name: "a", Enabled: true, Up: true, InfiniBand: &api.InfiniBandStatus{State: "Initialize"}},
			"the InfiniBand port is Initialize"},
	} {
		want := api.Health{Live: true, Ready: c.want == "", Reasons: []api.HealthProblem{}}
		if c.want != "" {
			want.Reasons = []api.HealthProblem{{Check: "link", Adapter: "a", Text: c.want}}
		}
		if got := api.Readiness(api.Status{Adapters: []api.AdapterStatus{up, c.adapter}}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}

// TestHealth_Statuses: probes of HTTP see by the status alone what a driver is; the reasons are in the body.
func TestHealth_Statuses(t *testing.T) {
	b := serve(t, Config{})
	b.fake.status.Adapters = []api.AdapterStatus{{Name: "x", Enabled: true}}
	for path, want := range map[string]int{"/health": 200, "/health/live": 200, "/health/ready": http.StatusServiceUnavailable} {
		status, text := b.request(t, "GET", path, "")
		var h api.Health
		if err := json.Unmarshal([]byte(text), &h); err != nil || status != want || !h.Live || h.Ready || len(h.Reasons) != 1 {
			t.Errorf("%s: status %d, %s", path, status, text)
		}
	}
	if h, err := b.client.Health(t.Context()); err != nil || !h.Live || h.Ready {
		t.Errorf("the client gets %+v, %v", h, err)
	}
}

// TestProbe_Stuck: a driver that does not answer is not live, however many ask, and is asked once; it is live when it goes on.
func TestProbe_Stuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probe{limit: healthPatience}
		var asked atomic.Int32
		goes := make(chan struct{})
		overview := func() api.Status {
			asked.Add(1)
			<-goes
			return api.Status{}
		}
		begin := time.Now()
		for range 3 {
			h, err := p.health(t.Context(), overview)
			if err != nil || h.Live || h.Ready || len(h.Reasons) != 1 || h.Reasons[0].Check != "progress" {
				t.Errorf("%+v, %v", h, err)
			}
		}
		if took := time.Since(begin); took != 3*healthPatience || asked.Load() != 1 {
			t.Errorf("three probes took %v and asked %d times, want %v and once", took, asked.Load(), 3*healthPatience)
		}
		close(goes)
		synctest.Wait()
		if h, err := p.health(t.Context(), overview); err != nil || !h.Live || !h.Ready {
			t.Errorf("when the driver goes on: %+v, %v", h, err)
		}
	})
}
