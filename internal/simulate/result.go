package simulate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
)

// Result is what a run gave. Times are microseconds, rates Gb/s, queues KB of 1,000 bytes. It has nothing of the machine that it
// was made on, so that the same scenario gives the same bytes.
type Result struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	Hosts       int     `json:"hosts"`
	Switches    int     `json:"switches"`
	Links       int     `json:"links"`
	Seed        uint64  `json:"seed"`
	Lean        bool    `json:"lean"`
	Duration    float64 `json:"duration_us"` // of virtual time, until all flows were complete or the scenario's end
	Sample      float64 `json:"sample_us"`

	Summary   Summary      `json:"summary"`
	Flows     []Flow       `json:"flows"`
	Series    Series       `json:"series"`
	Ports     []Port       `json:"ports"`
	Storms    []Storm      `json:"storms,omitempty"`
	Deadlocks []Cycle      `json:"deadlocks,omitempty"`
	Faults    []Fault      `json:"faults,omitempty"`
	DCBX      []Agreed     `json:"dcbx,omitempty"`
	LACP      []Aggregated `json:"lacp,omitempty"`
	Graph     *graphShape  `json:"topology"`
}

// Summary is a run in few numbers.
type Summary struct {
	Flows    int         `json:"flows"`
	Complete int         `json:"complete"`
	Failed   int         `json:"failed"` // of which a write has ended with an error
	FCT      Percentiles `json:"fct_us"`
	Slowdown Percentiles `json:"slowdown"`
	// Goodput is of all flows together, over the whole run; Late over its second half.
	Goodput float64 `json:"goodput_gbps"`
	Late    float64 `json:"goodput_late_gbps"`
	// Jain is Jain's index of the mean rates of all flows; of those without an end in the second half.
	Jain float64 `json:"jain"`
	// Queue is that of the port with the longest queue, over all samples.
	Queue     Percentiles `json:"queue_kb"`
	QueuePort string      `json:"queue_port"`
	Packets   uint64      `json:"packets"`    // with a payload, sent
	Again     uint64      `json:"sent_again"` // of them more than once
	Crossed   uint64      `json:"traversals"` // frames that have crossed a link
	Marks     uint64      `json:"marks"`
	CNPs      uint64      `json:"cnps"`
	Pauses    uint64      `json:"pauses"`
	PauseTime float64     `json:"pause_us"` // of all ports and priorities together
	Drops     uint64      `json:"drops"`
	Storms    int         `json:"storms"`
	Deadlocks int         `json:"deadlocks"`
}

// Percentiles are those of some values.
type Percentiles struct {
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

// Flow is one of a run. What has not happened is null.
type Flow struct {
	Number   int      `json:"flow"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	Priority uint8    `json:"priority"`
	Bytes    int64    `json:"bytes"` // 0: without end
	Got      int64    `json:"received_bytes"`
	Start    *float64 `json:"start_us"`
	End      *float64 `json:"end_us"`
	FCT      *float64 `json:"fct_us"`
	Ideal    *float64 `json:"ideal_us"`
	Slowdown *float64 `json:"slowdown"`
	Goodput  float64  `json:"goodput_gbps"`
	Packets  uint64   `json:"packets"`
	Again    uint64   `json:"sent_again"`
	Marked   uint64   `json:"marked"`
	CNPs     uint64   `json:"cnps"`
	Failed   bool     `json:"failed,omitempty"`
}

// Series are time series, of a value for each sample: rates and counts since the sample before, and queues at its time.
type Series struct {
	Time   []float64    `json:"time_us"`
	Sum    []float64    `json:"sum_gbps"`
	Jain   []float64    `json:"jain"`
	Marks  []uint64     `json:"marks"`
	CNPs   []uint64     `json:"cnps"`
	Pauses []uint64     `json:"pauses"`
	Flows  []FlowRate   `json:"flows"`  // the first 256
	Queues []PortQueues `json:"queues"` // the longest 16
}

// FlowRate is the throughput of a flow over time.
type FlowRate struct {
	Flow int       `json:"flow"`
	Rate []float64 `json:"gbps"`
}

// PortQueues is what waits at a port over time.
type PortQueues struct {
	Port string    `json:"port"`
	KB   []float64 `json:"kb"`
}

// Port is a port of a switch or host.
type Port struct {
	Node       string     `json:"node"`
	Port       int        `json:"port"`
	Peer       string     `json:"peer"`
	Rate       float64    `json:"rate_gbps"`
	Used       float64    `json:"used"` // share of the rate that was sent, with all headers
	Priorities []Priority `json:"priorities"`
	Dropped    uint64     `json:"dropped"` // before they had a queue
}

// Priority is what happened at a port at a priority, of those where something did.
type Priority struct {
	Priority  int     `json:"priority"`
	Frames    uint64  `json:"frames"`
	Bytes     uint64  `json:"bytes"`
	Marked    uint64  `json:"marked"`
	Drops     uint64  `json:"drops"`
	Peak      float64 `json:"peak_kb"`
	Sent      uint64  `json:"pauses_sent"`
	Received  uint64  `json:"pauses_received"`
	SentUs    float64 `json:"pause_sent_us"`
	Paused    float64 `json:"paused_us"`
	Storms    uint64  `json:"storms"`
	Headrooms float64 `json:"peak_headroom_kb"`
}

// Storm is a queue that was paused for long.
type Storm struct {
	Node     string  `json:"node"`
	Port     int     `json:"port"`
	Peer     string  `json:"peer"`
	Priority int     `json:"priority"`
	Since    float64 `json:"since_us"`
}

// Cycle is a deadlock.
type Cycle struct {
	At     float64  `json:"at_us"`
	Queues []string `json:"queues"`
}

// Fault is something that went wrong by the scenario's will. What has not happened any more is null.
type Fault struct {
	What  string   `json:"what"`
	At    float64  `json:"at_us"`
	Until *float64 `json:"until_us"`
}

// graphShape is the topology, for pictures of it.
type graphShape struct {
	Nodes []shapeNode `json:"nodes"`
	Links []shapeLink `json:"links"`
}

type shapeNode struct {
	Name string `json:"name"`
	Tier int    `json:"tier"`
}

type shapeLink struct {
	A     int     `json:"a"`
	B     int     `json:"b"`
	Rate  float64 `json:"rate_gbps"`
	Delay float64 `json:"delay_us"`
	Used  float64 `json:"used"`   // of the busier direction
	Pause float64 `json:"paused"` // share of the time that a direction was paused
}

func us[T clock.Time | time.Duration](t T) float64 { return float64(t) / 1e3 }

func ptr(x float64) *float64 { return &x }

// percentiles returns those of values, which it sorts.
func percentiles(v []float64) (p Percentiles) {
	if len(v) == 0 {
		return p
	}
	slices.Sort(v)
	at := func(q float64) float64 { return v[max(int(math.Ceil(q*float64(len(v))))-1, 0)] }
	sum := 0.
	for _, x := range v {
		sum += x
	}
	return Percentiles{at(.5), at(.95), at(.99), v[len(v)-1], sum / float64(len(v))}
}

// result returns what the run gave.
func (r *Run) result() *Result {
	s, g := r.s, r.s.Graph
	x := &Result{Name: s.Name, Description: s.Description, Hosts: len(g.Hosts), Switches: len(g.Nodes) - len(g.Hosts), Links: len(g.Links),
		Seed: s.Seed, Lean: s.Lean, Duration: us(r.now), Sample: us(s.Sample), DCBX: r.n.agreed,
		LACP: r.aggregated()}
	r.resultFlows(x)
	r.resultPorts(x)
	r.resultSeries(x)
	for i := range s.Faults {
		if f := &s.Faults[i]; f.At < r.now {
			o := Fault{What: f.What, At: us(f.At)}
			if f.Until < r.now {
				o.Until = ptr(us(f.Until))
			}
			x.Faults = append(x.Faults, o)
		}
	}
	x.Summary.Deadlocks, x.Summary.Storms = len(x.Deadlocks), len(x.Storms)
	return x
}

func (r *Run) resultFlows(x *Result) {
	s, g := r.s, r.s.Graph
	var fct, slowdown []float64
	sum, squares, n := 0., 0., 0
	half := len(r.samples.at) / 2
	all := int64(0)
	for i := range r.flows {
		f := r.flows[i]
		w := f.sending.Flow
		from, to := g.Hosts[w.From], g.Hosts[w.To]
		o := Flow{Number: i, From: g.Nodes[from].Name, To: g.Nodes[to].Name, Priority: w.Priority, Bytes: w.Bytes, Got: f.got,
			Packets: f.packets, Again: f.again, Marked: f.marked, CNPs: f.cnps, Failed: f.failed}
		all += f.got
		x.Summary.Packets += f.packets
		x.Summary.Again += f.again
		x.Summary.CNPs += f.cnps
		if f.failed {
			x.Summary.Failed++
		}
		if f.began != clock.Never {
			o.Start = ptr(us(f.began))
			o.Goodput = rate(f.got, clock.Min(f.ended, r.now).Sub(f.began))
			share := o.Goodput
			if w.Bytes == 0 && i < r.samples.flows && half > 0 {
				share = rate(f.got-r.samples.got[i][half-1], r.now.Sub(r.samples.at[half-1]))
			}
			sum += share
			squares += share * share
			n++
		}
		if f.ended != clock.Never {
			x.Summary.Complete++
			ideal := r.n.ideal(from, to, w.Bytes, s.MTU(w))
			took := f.ended.Sub(f.began)
			o.End, o.FCT, o.Ideal, o.Slowdown = ptr(us(f.ended)), ptr(us(took)), ptr(us(ideal)), ptr(float64(took)/float64(ideal))
			fct, slowdown = append(fct, *o.FCT), append(slowdown, *o.Slowdown)
		}
		x.Flows = append(x.Flows, o)
	}
	x.Summary.Flows = len(r.flows)
	x.Summary.FCT, x.Summary.Slowdown = percentiles(fct), percentiles(slowdown)
	x.Summary.Jain = jain(sum, squares, n)
	x.Summary.Goodput = rate(all, time.Duration(r.now))
	x.Summary.Late = x.Summary.Goodput
	if half > 0 {
		x.Summary.Late = rate(all-r.samples.sum[half-1], r.now.Sub(r.samples.at[half-1]))
	}
}

func (r *Run) resultPorts(x *Result) {
	g := r.s.Graph
	x.Graph = &graphShape{}
	used, paused := make([]float64, len(g.Links)), make([]float64, len(g.Links))
	for i := range g.Nodes {
		node := &g.Nodes[i]
		x.Graph.Nodes = append(x.Graph.Nodes, shapeNode{node.Name, node.Tier})
		for p, l := range node.Links {
			o, held := r.port(x, i, p)
			used[l], paused[l] = max(used[l], o.Used), max(paused[l], held)
			x.Ports = append(x.Ports, o)
		}
		r.storms(x, i)
	}
	for i := range g.Links {
		l := &g.Links[i]
		x.Graph.Links = append(x.Graph.Links, shapeLink{l.A, l.B, float64(l.Rate) / 1e9, us(l.Delay), used[i], paused[i]})
	}
	for _, d := range r.deadlocks {
		c := Cycle{At: us(d.At)}
		for _, w := range d.Cycle {
			c.Queues = append(c.Queues, r.queueName(w.End))
		}
		x.Deadlocks = append(x.Deadlocks, c)
	}
}

// queueName names a port by its node and the node at the other end, and by its number if others lead there too.
func (r *Run) queueName(e ethernet.End) string {
	g, several := r.s.Graph, false
	node := &g.Nodes[e.Node]
	peer, _ := g.Links[node.Links[e.Port]].Other(e.Node)
	for p, l := range node.Links {
		other, _ := g.Links[l].Other(e.Node)
		several = several || other == peer && p != e.Port
	}
	if several {
		return fmt.Sprintf("%s[%d]>%s", node.Name, e.Port+1, g.Nodes[peer].Name)
	}
	return node.Name + ">" + g.Nodes[peer].Name
}

// port returns what happened at a port of a node, and for which share of the time it was paused.
func (r *Run) port(x *Result, i, p int) (Port, float64) {
	g := r.s.Graph
	link := &g.Links[g.Nodes[i].Links[p]]
	peer, _ := link.Other(i)
	c := r.n.Switch(i).Port(p).Counters(r.now)
	o := Port{Node: g.Nodes[i].Name, Port: p, Peer: g.Nodes[peer].Name, Rate: float64(link.Rate) / 1e9,
		Priorities: []Priority{}}
	d := &c.Dropped
	o.Dropped = d.Sum() + d.Lost
	bytes, held := uint64(0), 0.
	for q := range c.Priority {
		k := &c.Priority[q]
		pause := k.Pause
		if q == 0 && c.Global != (ethernet.PauseCounters{}) {
			pause = c.Global
		}
		y := Priority{Priority: q, Frames: k.OutFrames, Bytes: k.OutBytes, Marked: k.Marked,
			Drops: k.QueueDrops + k.BufferDrops + k.HeadroomDrops, Peak: float64(k.PeakQueue) / 1e3, Sent: pause.Sent,
			Received: pause.Received, SentUs: us(pause.SentTime), Paused: us(pause.ReceivedTime),
			Storms: k.Storms, Headrooms: float64(k.PeakHeadroom) / 1e3}
		if y == (Priority{Priority: q}) {
			continue
		}
		o.Priorities = append(o.Priorities, y)
		bytes += k.OutBytes + k.OutFrames*onWire
		held = max(held, y.Paused/max(us(r.now), 1e-9))
		x.Summary.Crossed += k.OutFrames + pause.Sent
		x.Summary.Marks += y.Marked
		x.Summary.Pauses += y.Sent
		x.Summary.PauseTime += y.SentUs
		x.Summary.Drops += y.Drops
	}
	x.Summary.Drops += o.Dropped
	o.Used = rate(int64(bytes), time.Duration(r.now)) / o.Rate
	return o, held
}

func (r *Run) storms(x *Result, i int) {
	g := r.s.Graph
	for s, ok := r.n.Switch(i).Storm(); ok; s, ok = r.n.Switch(i).Storm() {
		if s.Port >= len(g.Nodes[i].Links) { // the host's end of a station
			continue
		}
		peer, _ := g.Links[g.Nodes[i].Links[s.Port]].Other(i)
		x.Storms = append(x.Storms, Storm{g.Nodes[i].Name, s.Port, g.Nodes[peer].Name, int(s.Priority), us(s.Since)})
	}
}
