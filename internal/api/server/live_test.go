package server

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/events"
)

func TestCounters(t *testing.T) {
	words := []collector.Adapter{{Counters: device.Counters{Name: "Ethernet 1", Enabled: true}}}
	words[0].Transport.Probes = 4
	b := serve(t, Config{Counters: collector.New(collector.Config{Read: func() []collector.Adapter { return words }})})
	status, text := b.request(t, "GET", "/counters?path=transport.probes", "")
	var s counters.Snapshot
	if err := json.Unmarshal([]byte(text), &s); err != nil || status != 200 {
		t.Fatal(status, text)
	}
	if len(s.Instances) != 1 || len(s.Instances[0].Values) != 1 || *s.Instances[0].Values[0].Raw != 4 {
		t.Errorf("counters %+v, want one value of 4", s)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/counters?path=nonsense", "", 422, `counter path`},
		{"GET", "/counters?path=transport.probes&path=nonsense", "", 422, `nonsense`},
		{"POST", "/counters/reset", `{"set":"rdma_activity"}`, 422, "only a restart"},
		{"POST", "/counters/reset", `{"sett":"transport"}`, 422, "sett"},
		{"POST", "/counters/reset", `{"set":"transport"}`, 200, ""},
		{"GET", "/metrics", "", 200, `softvpi_transport_probes_total{adapter="Ethernet 1"} 0`},
	} {
		if status, text := b.request(t, c.method, c.path, c.body); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: status %d, %s; want %d and %q", c.method, c.path, status, text, c.status, c.want)
		}
	}
	var sets []counters.Set
	if err := b.client.Get(t.Context(), "/counters/sets", nil, &sets); err != nil || len(sets) != len(catalogue.CounterSets()) {
		t.Errorf("%d sets, %v", len(sets), err)
	}
	err := b.client.Post(t.Context(), "/counters/reset", counters.ResetRequest{Set: "nonsense"}, nil)
	var field *api.FieldError
	if !errors.As(err, &field) || !strings.Contains(err.Error(), "no such counter set") {
		t.Errorf("%v, want that there is no such counter set", err)
	}
}

func TestEvents(t *testing.T) {
	log := events.Open(events.Config{})
	t.Cleanup(func() { _ = log.Close() })
	log.Raise(0, events.AdapterEnabled{Adapter: "left"})
	log.Raise(0, events.LinkDown{Adapter: "right", Port: 1})
	b := serve(t, Config{Events: log})
	for query, want := range map[string]string{
		"": "AdapterEnabled LinkDown", "severity=warning": "LinkDown", "adapter=left&adapter=right": "AdapterEnabled LinkDown",
		"id=0x8008": "LinkDown", "after=1": "LinkDown", "limit=1": "LinkDown", "since=2001-01-02T03:04:05Z": "AdapterEnabled LinkDown",
		"until=2001-01-02T03:04:05Z": "", "after=2&wait=1ms": "", "source=mlx5": "LinkDown",
	} {
		status, text := b.request(t, "GET", "/events?"+query, "")
		var p events.Page
		if err := json.Unmarshal([]byte(text), &p); err != nil || status != 200 {
			t.Fatal(query, status, text)
		}
		var got []string
		for _, e := range p.Events {
			got = append(got, e.Symbol)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	for query, want := range map[string]string{
		"severity=worst": "Information, Warning, Error", "id=x": "a number", "limit=10001": "10000", "limit=0": "limit",
		"since=yesterday": "since",
		"wait=2h":         "up to 1m", "after=-1": "after",
	} {
		if status, text := b.request(t, "GET", "/events?"+query, ""); status != 422 || !strings.Contains(text, want) {
			t.Errorf("%s: status %d, %s; want 422 and %q", query, status, text, want)
		}
	}
}
