package web

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/qos"
)

// qosView is the contents of the QoS tab of an adapter.
type qosView struct {
	Why        string // the port has no priorities; empty: it has
	Facts      []fact
	Priorities []qosPriority
	Classes    []qosClass
	Policies   []api.QoSPolicy
	Words      []qosWord
	Marks      []markKey
	Congestion []api.Setting
	Limited    []api.QPStatus // queue pairs with a rate, at most mostLimited
	More       int            // further ones
	Name, Rule string         // of a policy that was refused
}

// qosPriority is a priority of the port, with what it carries.
type qosPriority struct {
	Name       string // 0 to 7, or untagged
	Class      string
	Paused     bool   // on its own
	DSCP       string // of its RDMA packets
	Sent, Got  uint64 // packets
	PausesSent uint64
	PausesGot  uint64
	Discarded  uint64
	bytes      uint64
	SentRate   float64 // bits a second since the reading before
	Share      float64 // of what the port has sent since then
}

// qosClass is a traffic class.
type qosClass struct {
	Number     int
	Priorities string
	Algorithm  string // ETS, strict
	Bandwidth  string
	Rate       string
	SentRate   float64
	Share      float64
}

// qosWord is a setting of the port, as softvpi qos set has it.
type qosWord struct{ Name, Title, Value, Help string }

// markKey is a key that says how frames get their priorities.
type markKey struct{ Name, Value, Effect string }

// mostLimited is how many queue pairs with a rate are listed.
const mostLimited = 20

// qosReadings are the last readings of what ports have sent, from which shares are worked out.
type qosReadings struct {
	mu  sync.Mutex
	all map[string][]qosReading // of an adapter, the oldest first
}

type qosReading struct {
	at   time.Duration
	sent [qos.Priorities + 1]uint64
}

// since returns a reading before this one, and keeps this one for later. There are few adapters.
func (r *qosReadings) since(name string, now qosReading) (before qosReading, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string][]qosReading{}
	}
	kept := slices.DeleteFunc(r.all[name], func(x qosReading) bool { return x.at > now.at })
	for _, x := range kept {
		if now.at-x.at >= between {
			before, ok = x, true
		}
	}
	if len(kept) == 0 || now.at-kept[len(kept)-1].at >= between {
		kept = append(kept, now)
	}
	r.all[name] = kept[max(0, len(kept)-keptReadings):]
	return before, ok
}

// qos shows the QoS tab.
func (s *Server) qos(q *request) error { return s.showQoS(q, nil, "") }

// showQoS shows the tab, with what was entered and refused.
func (s *Server) showQoS(q *request, entered url.Values, problem string) error {
	v, err := s.adapterView(q, "qos")
	if err != nil {
		return err
	}
	d, err := s.qosOf(q, v.Adapter)
	if err != nil {
		return err
	}
	for i := range d.Words {
		if w := &d.Words[i]; entered.Has(w.Name) {
			w.Value = entered.Get(w.Name)
		}
	}
	d.Name, d.Rule = entered.Get("policy"), entered.Get("rule")
	v.Data, v.Problem = d, problem
	return s.show(q, "qos", v)
}

// qosOf returns what an adapter does about priorities, and what they carry.
func (s *Server) qosOf(q *request, a *api.AdapterStatus) (d qosView, err error) {
	x := a.QoS
	if x == nil {
		d.Why = "An InfiniBand port has service levels and virtual lanes in place of priorities."
		return d, nil
	}
	list, err := s.client.Settings(q.r.Context(), a.Name)
	if err != nil {
		return d, err
	}
	keys := map[string]string{}
	for _, k := range list {
		keys[k.Name] = k.Value
		switch {
		case strings.HasPrefix(k.Name, "Dcqcn"):
			d.Congestion = append(d.Congestion, k)
		case marks(k.Name):
			d.Marks = append(d.Marks, markKey{k.Name, k.Value, k.Effect})
		}
	}
	d.Facts, d.Words, d.Policies = qosFacts(a, keys), qosWords(x), x.Policies
	if err := s.readPriorities(q, a, &d, keys); err != nil {
		return d, err
	}
	var page api.Connections
	page, err = s.client.Connections(q.r.Context(), api.ConnectionQuery{Adapter: a.Name, Sort: "rate", Limit: mostLimited + 1})
	for _, c := range page.Items {
		if c.Rate != nil || c.RateLimit > 0 {
			d.Limited = append(d.Limited, c.QPStatus)
		}
	}
	if len(d.Limited) > mostLimited {
		d.Limited, d.More = d.Limited[:mostLimited], page.Total-mostLimited
	}
	return d, err
}

// marks reports whether a key says how frames get their priorities.
func marks(name string) bool {
	return slices.Contains([]string{"RxTrustedState", "DefaultUntaggedPriority", "RxUntaggedMapToLossless", "TxUntagPriorityTag",
		"DscpBasedEtsEnabled", "DscpBasedpfcEnabled", "DscpForGlobalFlowControl"}, name) || strings.HasPrefix(name, dscpKey)
}

// dscpKey begins the names of the keys that map priorities to DSCPs.
const dscpKey = "PriorityToDscpMappingTable_"

func qosFacts(a *api.AdapterStatus, keys map[string]string) []fact {
	x, f := a.QoS, a.FlowControl
	trust := map[string]string{"1": "the tag (PCP)", "2": "the DSCP"}[keys["RxTrustedState"]]
	out := []fact{
		{"Priorities", cmp.Or(x.Off, "on")},
		{"Trust", cmp.Or(trust, "the tag (PCP)")},
		{"Priority of untagged frames", cmp.Or(keys["DefaultUntaggedPriority"], "0")},
		{"DCBX", strings.TrimSpace(x.DCBX.State + " " + cmp.Or(x.DCBX.Off, x.DCBX.Peer))},
		{"Classes by", x.Operative.ETSFrom}, {"PFC", x.Operative.PFC + " (" + x.Operative.PFCFrom + ")"},
		{"Applications", x.Operative.Applications + " (" + x.Operative.ApplicationsFrom + ")"},
	}
	if m := x.Enforced.Missing(); m != "" {
		out = append(out, fact{"Not enforced", m})
	}
	switch {
	case f == nil:
	case f.Refused != "":
		out = append(out, fact{"Pauses", f.Refused})
	default:
		out = append(out, fact{"Pauses", "obeys " + f.Obeys + ", asks " + f.Asks}, fact{"Paused now", or(f.Paused, "none")})
	}
	return out
}

// qosWords returns the settings that a form changes.
func qosWords(x *api.QoSStatus) []qosWord {
	o := &x.Own
	return []qosWord{
		{"pfc", "Priorities that are paused on their own (PFC)", o.PFC, "3,5 or none"},
		{"prio-tc", "Classes of priorities", o.PrioTC, "3:1,5:7; the others are in class 0"},
		{"tc-bw", "Bandwidths of classes that share (ETS), in percent", o.TCBandwidth, "0:40,1:60; the others are strict"},
		{"tc-rate", "The most that classes send, in Mbit/s", x.Rates, "3:100,5:300 or none"},
		{"app", "Priorities of applications", o.Applications, "port:4791=3,ethertype:0x8915=5 or none"},
	}
}

// readPriorities adds the priorities and the classes with what they carry.
func (s *Server) readPriorities(q *request, a *api.AdapterStatus, d *qosView, keys map[string]string) error {
	var snapshot counters.Snapshot
	if err := s.client.Get(q.r.Context(), "/counters", url.Values{"path": {"adapter_qos"}}, &snapshot); err != nil {
		return err
	}
	o := &a.QoS.Operative
	classes, err := qos.ParseClasses(o.PrioTC, o.TCBandwidth)
	if err != nil {
		return err
	}
	paused, err := qos.ParsePriorities(o.PFC)
	if err != nil {
		return err
	}
	now := qosReading{at: snapshot.Uptime}
	for p := range qos.Priorities + 1 {
		x := qosPriority{Name: "untagged", Class: strconv.Itoa(int(classes.Class[0]))}
		if p < qos.Priorities {
			x = qosPriority{Name: strconv.Itoa(p), Class: strconv.Itoa(int(classes.Class[p])), Paused: paused>>p&1 != 0,
				DSCP: keys[dscpKey+strconv.Itoa(p)]}
		}
		for i := range snapshot.Instances {
			if in := &snapshot.Instances[i]; in.Labels["adapter"] == a.Name && in.Labels["priority"] == x.Name {
				x.count(in.Values)
			}
		}
		now.sent[p] = x.bytes
		d.Priorities = append(d.Priorities, x)
	}
	if before, ok := s.qosReadings.since(a.Name, now); ok {
		d.share(now, before)
	}
	d.classes(a, &classes, keys)
	return nil
}

func (x *qosPriority) count(values []counters.Value) {
	for _, v := range values {
		if v.Raw == nil {
			continue
		}
		switch v.Counter {
		case "sent_packets":
			x.Sent = *v.Raw
		case "sent_bytes":
			x.bytes = *v.Raw
		case "received_packets":
			x.Got = *v.Raw
		case "sent_pause_frames":
			x.PausesSent = *v.Raw
		case "received_pause_frames":
			x.PausesGot = *v.Raw
		case "sent_discarded_frames":
			x.Discarded = *v.Raw
		}
	}
}

// share works out rates and shares from two readings.
func (d *qosView) share(now, before qosReading) {
	sum, seconds := uint64(0), (now.at - before.at).Seconds()
	for p := range now.sent {
		if now.sent[p] < before.sent[p] {
			return // the driver has counted anew
		}
		sum += now.sent[p] - before.sent[p]
	}
	for p := range d.Priorities {
		bytes := now.sent[p] - before.sent[p]
		d.Priorities[p].SentRate = 8 * float64(bytes) / seconds
		d.Priorities[p].Share = float64(bytes) / max(float64(sum), 1)
	}
}

// classes adds the classes that have priorities. Frames without a priority count with the default one.
func (d *qosView) classes(a *api.AdapterStatus, e *qos.ETS, keys map[string]string) {
	rates, _ := qos.ParseRates(a.QoS.Rates) // as the driver has them
	untagged, _ := strconv.Atoi(keys["DefaultUntaggedPriority"])
	d.Priorities[qos.Priorities].Class = strconv.Itoa(int(e.Class[untagged&7]))
	for c := range qos.Classes {
		x := qosClass{Number: c, Algorithm: "strict", Bandwidth: "-", Rate: "-"}
		var members uint8
		for p := range d.Priorities {
			if d.Priorities[p].Class != strconv.Itoa(c) {
				continue
			}
			x.SentRate += d.Priorities[p].SentRate
			x.Share += d.Priorities[p].Share
			if p < qos.Priorities {
				members |= 1 << p
			}
		}
		if members == 0 {
			continue
		}
		var names []string
		for m := members; m != 0; m &= m - 1 {
			names = append(names, strconv.Itoa(bits.TrailingZeros8(m)))
		}
		x.Priorities = strings.Join(names, ", ")
		if e.Algorithm[c] != qos.Strict {
			x.Algorithm, x.Bandwidth = "ETS", strconv.Itoa(int(e.Bandwidth[c]))+" %"
		}
		if rates[c] != 0 {
			x.Rate = fmt.Sprintf("%d Mb/s", rates[c])
		}
		d.Classes = append(d.Classes, x)
	}
}

// setQoS changes settings, or adds or removes a policy.
func (s *Server) setQoS(q *request) error {
	form, name := q.r.PostForm, q.r.PathValue("name")
	var set []string
	said := "The settings of priorities act now."
	switch {
	case form.Has("remove"):
		set = []string{policyWord + form.Get("remove") + "=default"}
		said = "The policy " + form.Get("remove") + " is gone."
	case form.Has("rule"):
		if p := form.Get("policy"); p == "" || strings.ContainsAny(p, "=") {
			return s.showQoS(q, form, sentence((&api.FieldError{Field: "name of a policy", Value: strconv.Quote(p),
				Allowed: "1 to 64 characters without = and commas"}).Error()))
		}
		set = []string{policyWord + form.Get("policy") + "=" + strings.TrimSpace(form.Get("rule"))}
		said = "The policy " + form.Get("policy") + " acts now."
	default:
		for _, w := range qosWords(&api.QoSStatus{}) {
			if form.Has(w.Name) && form.Get(w.Name) != form.Get("was-"+w.Name) {
				set = append(set, w.Name+"="+cmp.Or(strings.TrimSpace(form.Get(w.Name)), "default"))
			}
		}
		if len(set) == 0 {
			return s.done(q, "Nothing was changed.", adapterURL(name, "/qos"))
		}
	}
	err := s.client.SetQoS(q.r.Context(), api.QoSRequest{Adapter: name, Settings: set})
	var missing *missingError
	switch {
	case errors.As(err, &missing):
		return err
	case err != nil:
		return s.showQoS(q, form, sentence(err.Error()))
	}
	return s.done(q, said, adapterURL(name, "/qos"))
}

// policyWord begins the settings that are policies.
const policyWord = "policy:"
