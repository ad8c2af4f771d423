package mlxtool

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/device"
)

const (
	// throughputOver is the default time over which the throughput is measured.
	throughputOver = 250 * time.Millisecond
	maxPerfSeconds = 3600
)

// The sets that perfstats shows and resets; those of rings go with the ones of a direction if the adapter has an Ethernet
// function.
const (
	receiveSet = "datapath"
	sendSet    = "send_path"
	globalSet  = "transport"
)

var ringSets = map[string]string{receiveSet: "receive_queues", sendSet: "send_queues"}

// perfstatForms are the words that may follow the interface's name: which sets to show or reset.
var perfstatForms = map[string]struct {
	sets  []string
	timed bool
	reset bool
}{
	"":            {sets: []string{receiveSet, sendSet, globalSet}},
	"showall":     {sets: []string{receiveSet, sendSet, globalSet}},
	"rx":          {sets: []string{receiveSet}},
	"tx":          {sets: []string{sendSet}},
	"rxd":         {sets: []string{receiveSet}, timed: true},
	"txd":         {sets: []string{sendSet}, timed: true},
	"rxreset":     {sets: []string{receiveSet}, reset: true},
	"txreset":     {sets: []string{sendSet}, reset: true},
	"globalreset": {sets: []string{globalSet}, reset: true},
	"resetall":    {sets: []string{receiveSet, sendSet, globalSet}, reset: true},
}

func (r *run) perfstats() (report, error) {
	if len(r.args) == 0 {
		return nil, r.usagef("an interface name is missing")
	}
	word, rest := "", r.args[1:]
	if len(rest) > 0 {
		word, rest = rest[0], rest[1:]
	}
	form, ok := perfstatForms[strings.ToLower(word)]
	if !ok {
		return nil, r.usagef("%q is not a form of it", word)
	}
	over := throughputOver
	if form.timed {
		if len(rest) == 0 {
			return nil, r.usagef("%s needs a number of seconds", word)
		}
		n, err := strconv.ParseUint(rest[0], 10, 32)
		if err != nil || n == 0 || n > maxPerfSeconds {
			return nil, r.usagef("%q is not a number of seconds from 1 to %d", rest[0], maxPerfSeconds)
		}
		over, rest = time.Duration(n)*time.Second, rest[1:]
	}
	if err := r.noMore(rest); err != nil {
		return nil, err
	}
	a, _, err := r.one()
	switch {
	case err != nil:
		return nil, err
	case form.reset:
		return r.resetStats(a, form.sets)
	}
	return r.stats(a, form.sets, over, form.timed)
}

func (r *run) resetStats(a *api.AdapterStatus, sets []string) (report, error) {
	t := table{Label: "Interface", Name: a.Name, Fields: []string{"Statistics", "Action"}}
	for _, set := range withRings(a, sets) {
		if err := r.client.Post(r.ctx, "/counters/reset", counters.ResetRequest{Set: set, Adapter: a.Name}, nil); err != nil {
			return nil, err
		}
		s, _ := catalogue.CounterSetNamed(set)
		t.add(s.Name, "reset")
	}
	return report{t}, nil
}

// ringValues are the counters of a set by their short names.
type ringValues map[string]uint64

// stats shows sets: what they have counted since they were reset, or within the time.
func (r *run) stats(a *api.AdapterStatus, sets []string, over time.Duration, within bool) (report, error) {
	before, began, err := r.snapshot(a, sets)
	if err != nil {
		return nil, err
	}
	if err := r.sleep(over); err != nil {
		return nil, err
	}
	after, ended, err := r.snapshot(a, sets)
	if err != nil {
		return nil, err
	}
	var out report
	for _, set := range sets {
		s, _ := catalogue.CounterSetNamed(set)
		now := after[set]
		if within {
			now = now.since(before[set])
		}
		t := table{Label: s.Name, Name: a.Name, Fields: []string{"Counter", "Value"}}
		for i := range s.Counters {
			c := &s.Counters[i]
			if strings.HasPrefix(c.Short, sizePrefix) || strings.HasSuffix(c.Short, "_batches") {
				continue
			}
			t.add(c.Name, now.value(c, after[set].since(before[set]), ended-began))
		}
		out = append(out, t)
		if set == receiveSet {
			out = append(out, now.histogram(a.Name))
		}
		if rings := ringSets[set]; rings != "" && a.Ethernet != nil {
			out = append(out, ringTable(a, rings, before, after, within))
		}
	}
	return out, nil
}

// since returns what was counted since another reading, or everything if there was a reset in between.
func (v ringValues) since(before ringValues) ringValues {
	out := ringValues{}
	for k, n := range v {
		if out[k] = n; n >= before[k] {
			out[k] = n - before[k]
		}
	}
	return out
}

// value returns the value of a counter: averages over what was counted, rates over the interval.
func (v ringValues) value(c *catalogue.Counter, recent ringValues, interval time.Duration) any {
	average := func(packets, batches string) any {
		if v[batches] == 0 {
			return 0.0
		}
		return float64(v[packets]) / float64(v[batches])
	}
	switch c.Short {
	case "packets_per_dpc":
		return average("dpc_received_packets", "dpc_batches")
	case "packets_per_thread":
		return average("thread_received_packets", "thread_batches")
	case "sent_packets_per_batch":
		return average("ring_sent_packets", "sent_batches")
	case "ring_bits", "sent_ring_bits":
		return fmt.Sprintf("%.3f Gb/s", float64(recent[c.Short])/interval.Seconds()/1e9)
	}
	if n, ok := v[c.Short]; ok {
		return n
	}
	return notKnown
}

const sizePrefix = "batches_of_"

// histogram returns the histogram of batch sizes.
func (v ringValues) histogram(name string) table {
	t := table{Label: "Histogram of Number Of Received Packets Per Indicate Call", Name: name, Fields: []string{"Range", "Hits"}}
	for i := range device.RingSizes {
		from := i * device.RingStep
		t.add(fmt.Sprintf("%d - %d", from, from+device.RingStep-1), v[sizePrefix+strconv.Itoa(from)])
	}
	return t
}

// snapshot reads sets, and when the driver read them.
func (r *run) snapshot(a *api.AdapterStatus, sets []string) (map[string]ringValues, time.Duration, error) {
	q := url.Values{}
	for _, set := range sets {
		q.Add("path", `\`+set+"("+a.Name+`)\*`)
		if rings := ringSets[set]; rings != "" && a.Ethernet != nil && a.Ethernet.Queues > 0 {
			q.Add("path", `\`+rings+"("+a.Name+`, *)\*`)
		}
	}
	var s counters.Snapshot
	if err := r.client.Get(r.ctx, "/counters", q, &s); err != nil {
		return nil, 0, err
	}
	out := map[string]ringValues{}
	for _, in := range s.Instances {
		values := ringValues{}
		for _, v := range in.Values {
			if v.Raw != nil {
				values[v.Counter] = *v.Raw
			}
		}
		out[in.Set+in.Labels["queue"]] = values
	}
	return out, s.Uptime, nil
}

// withRings returns sets, with those of the rings of an adapter's Ethernet function.
func withRings(a *api.AdapterStatus, sets []string) (list []string) {
	for _, set := range sets {
		list = append(list, set)
		if rings := ringSets[set]; rings != "" && a.Ethernet != nil {
			list = append(list, rings)
		}
	}
	return list
}

// ringTable returns what each ring of an Ethernet function has counted, with its processor.
func ringTable(a *api.AdapterStatus, set string, before, after map[string]ringValues, within bool) table {
	s, _ := catalogue.CounterSetNamed(set)
	t := table{Label: s.Name, Name: a.Name, Fields: []string{"Ring", "Processor"}, Empty: "none"}
	for i := range s.Counters {
		t.Fields = append(t.Fields, s.Counters[i].Name)
	}
	for q, ring := range a.Ethernet.Rings {
		now := after[set+strconv.Itoa(q)]
		if within {
			now = now.since(before[set+strconv.Itoa(q)])
		}
		row := []any{q, ring.Processor}
		for i := range s.Counters {
			row = append(row, now[s.Counters[i].Short])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
