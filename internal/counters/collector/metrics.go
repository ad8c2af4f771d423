package collector

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// Metrics serves the counters in the formats of Prometheus: softvpi_<set>_<counter>, with _total if the
// counter only grows. Instead of rates it serves the underlying totals, and it uses Prometheus's base
// units: times in seconds, bits as bytes. Counters that nothing counts are absent.
func (c *Collector) Metrics() http.Handler {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(newMetrics(c), members(c.cfg.Read))
	if c.cfg.Driver != nil {
		r.MustRegister(driverValues(c.cfg.Driver))
	}
	if c.cfg.Identities != nil {
		r.MustRegister(identities(c.cfg.Identities))
	}
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{Registry: r, EnableOpenMetrics: true})
}

// metric is a counter as Prometheus sees it.
type metric struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	factor float64
}

type metrics struct {
	collector *Collector
	of        map[string]map[string]*metric // by the short names of set and counter
	labels    map[string][]string           // by the short name of the set
}

// setLabels are the labels of sets by what they have an instance for.
var setLabels = map[string][]string{
	"adapter": {"adapter"}, "device": {"device"}, "port": {"adapter", "port"}, "priority": {"adapter", "priority"},
	"cpu": {"adapter", "cpu"}, "queue": {"adapter", "queue"},
	"vport": {"adapter", "vport"}, "function": {"adapter", "function"}, "interface": {"adapter", "interface"},
	"team": {"adapter", "team"}, "member": {"adapter", "team", "member"},
	"vlan": {"adapter", "vlan"}, "queues": {"adapter"}, "overlay": {"adapter"},
}

func newMetrics(c *Collector) *metrics {
	m := &metrics{c, map[string]map[string]*metric{}, map[string][]string{}}
	for i := range catalogue.CounterSets() {
		set := &catalogue.CounterSets()[i]
		of := map[string]*metric{}
		m.of[set.Short], m.labels[set.Short] = of, setLabels[set.Instances]
		for j := range set.Counters {
			if k := &set.Counters[j]; k.Counted() && len(k.Of) == 0 {
				of[k.Short] = newMetric(set, k)
			}
		}
	}
	return m
}

func newMetric(set *catalogue.CounterSet, k *catalogue.Counter) *metric {
	name, kind, factor := "softvpi_"+set.Short+"_"+k.Short, prometheus.CounterValue, 1.0
	switch k.Unit {
	case "us":
		factor = 1e-6
	case "bits/s":
		name, factor = strings.TrimSuffix(name, "_bits")+"_bytes", 1.0/8
	}
	if k.Kind == catalogue.Level || k.Kind == catalogue.Ratio {
		kind = prometheus.GaugeValue
	} else {
		name += "_total"
	}
	return &metric{prometheus.NewDesc(name, set.Name+", "+k.Name+": "+k.Description, setLabels[set.Instances], nil), kind, factor}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, of := range m.of {
		for _, x := range of {
			out <- x.desc
		}
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	s, err := m.collector.Snapshot()
	if err != nil { // impossible without paths
		return
	}
	for i := range s.Instances {
		in := &s.Instances[i]
		var labels []string
		for _, l := range m.labels[in.Set] {
			labels = append(labels, in.Labels[l])
		}
		for _, v := range in.Values {
			if x := m.of[in.Set][v.Counter]; x != nil && v.Raw != nil {
				out <- prometheus.MustNewConstMetric(x.desc, x.kind, float64(*v.Raw)*x.factor, labels...)
			}
		}
	}
}

// DriverValue is a value that belongs to the driver as a whole.
type DriverValue struct {
	Name, Help string // as metrics have them
	Grows      bool   // it only grows
	Value      float64
}

// desc describes it to Prometheus.
func (r *DriverValue) desc() *prometheus.Desc { return prometheus.NewDesc(r.Name, r.Help, nil, nil) }

// driverValues serves values of the driver, always the same ones.
type driverValues func() []DriverValue

// Describe implements prometheus.Collector.
func (f driverValues) Describe(out chan<- *prometheus.Desc) {
	for _, r := range f() {
		out <- r.desc()
	}
}

// Collect implements prometheus.Collector.
func (f driverValues) Collect(out chan<- prometheus.Metric) {
	for _, r := range f() {
		kind := prometheus.GaugeValue
		if r.Grows {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(r.desc(), kind, r.Value)
	}
}
