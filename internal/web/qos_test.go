package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/qos"
)

// SetQoS implements server.QoSSource.
func (f *fake) SetQoS(q api.QoSRequest) error {
	return f.do("qos %s %s", q.Adapter, strings.Join(q.Settings, " "))
}

// priorities is a bench whose first adapter has settings of priorities.
func priorities(t *testing.T) *bench {
	b := newBench(t)
	a := &b.status.Adapters[0]
	a.QoS = &api.QoSStatus{Rates: "1:100", Enforced: api.EnforcedQoS{ETS: true, Applications: true},
		Operative: api.OperativeQoS{PFC: "3", PFCFrom: "peer", PrioTC: "3:1,7:7", TCBandwidth: "0:40,1:60", ETSFrom: "local",
			Applications: "none", ApplicationsFrom: "default"},
		Own:      api.OwnQoS{PFC: "none", PrioTC: "3:1,7:7", TCBandwidth: "0:40,1:60", Applications: "none"},
		Policies: []api.QoSPolicy{{Name: hostile, Policy: "netdirect=445,priority=3"}},
		DCBX:     api.DCBXStatus{State: "agreed", Peer: "02:00:00:00:00:01"}}
	a.QPs = []api.QPStatus{{Number: 77, Type: "RC", Owner: hostile, RateLimit: 20}, {Number: 78, Type: "RC"}}
	return b
}

// TestQoSIsShown: the tab has the priorities with their classes, what is paused with its origin, policies, rates and parameters.
func TestQoSIsShown(t *testing.T) {
	b := priorities(t)
	w := b.get("/web/adapters/Ethernet%201/qos")
	text := w.Body.String()
	if w.Code != http.StatusOK || strings.Contains(text, hostile) {
		t.Fatalf("status %d, or a name is not shown as text", w.Code)
	}
	for _, want := range []string{
		"<dd>3 (peer)</dd>", "<dd>PFC</dd>", "agreed 02:00:00:00:00:01", `data-name="Kind">strict<`, `data-name="Bandwidth">60 %<`,
		`data-name="Most">100 Mb/s<`, `data-name="Priorities">0, 1, 2, 4, 5, 6<`, `data-name="PFC">on<`, "20.0 Mb/s set", "DcqcnRpgAiRate",
		"PriorityToDscpMappingTable_3", "netdirect=445,priority=3", `name="tc-bw" value="0:40,1:60"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(text, `data-name="QP">78<`) {
		t.Error("a queue pair without a rate is listed")
	}
	w = b.get("/web/adapters/" + url.PathEscape(hostile) + "/qos")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "virtual lanes") {
		t.Errorf("an adapter without priorities: %d", w.Code)
	}
}

// TestQoSIsSet: the form changes what differs, all or nothing; policies come and go; what is refused stays in the fields.
func TestQoSIsSet(t *testing.T) {
	b := priorities(t)
	const page = "/web/adapters/Ethernet%201/qos"
	form := func() url.Values {
		v := url.Values{}
		for _, w := range qosWords(b.status.Adapters[0].QoS) {
			v.Set(w.Name, w.Value)
			v.Set("was-"+w.Name, w.Value)
		}
		return v
	}
	b.post(page, form())
	change := form()
	change.Set("pfc", " 3,5 ")
	change.Set("tc-rate", "")
	if w := b.post(page, change); w.Code != http.StatusSeeOther {
		t.Errorf("status %d", w.Code)
	}
	b.post(page, url.Values{"policy": {"SMB"}, "rule": {"netdirect=445,priority=3"}})
	b.post(page, url.Values{"remove": {"SMB"}})
	if w := b.post(page, url.Values{"policy": {"a=b"}, "rule": {"default,priority=1"}}); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a name with an equals sign: status %d", w.Code)
	}
	if want := []string{"qos Ethernet 1 pfc=3,5 tc-rate=default", "qos Ethernet 1 policy:SMB=netdirect=445,priority=3",
		"qos Ethernet 1 policy:SMB=default"}; !slices.Equal(b.did, want) {
		t.Errorf("done: %q", b.did)
	}
	b.fail = api.Wrong("pfc", `"9"`, "priorities 0 to 7")
	change.Set("pfc", "9")
	w := b.post(page, change)
	if text := w.Body.String(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(text, "Pfc is &#34;9&#34;") ||
		!strings.Contains(text, `name="pfc" value="9"`) {
		t.Errorf("status %d", w.Code)
	}
}

// TestSharesOfPriorities: rates and shares are those of what was sent between two readings, at least half a second apart.
func TestSharesOfPriorities(t *testing.T) {
	var r qosReadings
	at := func(now time.Duration, sent ...uint64) (shares []string) {
		d := qosView{Priorities: make([]qosPriority, qos.Priorities+1)}
		x := qosReading{at: now}
		copy(x.sent[:], sent)
		if before, ok := r.since("a", x); ok {
			d.share(x, before)
		}
		for _, p := range d.Priorities[:2] {
			shares = append(shares, fmt.Sprintf("%.0f b/s %.0f %%", p.SentRate, 100*p.Share))
		}
		return shares
	}
	nothing := []string{"0 b/s 0 %", "0 b/s 0 %"}
	for _, x := range []struct {
		got, want []string
	}{
		{at(time.Second, 1000, 1000), nothing}, {at(1200*time.Millisecond, 2000, 2000), nothing},
		{at(2*time.Second, 2000, 4000), []string{"8000 b/s 25 %", "24000 b/s 75 %"}},
		{at(3*time.Second, 2000, 4000), nothing}, {at(time.Second, 5, 5), nothing}, {at(2*time.Second, 1, 1), nothing},
	} {
		if !slices.Equal(x.got, x.want) {
			t.Errorf("%v, want %v", x.got, x.want)
		}
	}
}
