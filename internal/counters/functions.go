package counters

import "github.com/prometheus/client_golang/prometheus"

// Function is a virtual function with its values, in the order of functionMetrics.
type Function struct {
	Adapter, Name string
	Values        [7]uint64
}

// functionMetrics are what is served of every virtual function.
var functionMetrics = [len(Function{}.Values)]struct {
	desc *prometheus.Desc
	typ  prometheus.ValueType
}{
	{functionDesc("up", "Whether the link of the virtual function is up."), prometheus.GaugeValue},
	{functionDesc("sent_bytes_total", "Bytes of frames that the virtual function has sent."), prometheus.CounterValue},
	{functionDesc("received_bytes_total", "Bytes of frames that the virtual function has received."), prometheus.CounterValue},
	{functionDesc("sent_frames_total", "Frames that the virtual function has sent."), prometheus.CounterValue},
	{functionDesc("received_frames_total", "Frames that the virtual function has received."), prometheus.CounterValue},
	{functionDesc("spoofed_frames_total", "Frames that the virtual function tried to send with another's MAC or GID, and that were dropped."),
		prometheus.CounterValue},
	{functionDesc("queue_pairs", "Queue pairs that programs have on the virtual function."), prometheus.GaugeValue},
}

func functionDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("softvpi_function_"+name, help, []string{"adapter", "function"}, nil)
}

// functionValues serves virtual functions, which come and go.
type functionValues func() []Function

// Describe implements prometheus.Collector.
func (f functionValues) Describe(out chan<- *prometheus.Desc) {
	for _, m := range functionMetrics {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (f functionValues) Collect(out chan<- prometheus.Metric) {
	for _, v := range f() {
		for i, m := range functionMetrics {
			out <- prometheus.MustNewConstMetric(m.desc, m.typ, float64(v.Values[i]), v.Adapter, v.Name)
		}
	}
}
