package collector

import "github.com/prometheus/client_golang/prometheus"

// Identity is what an adapter is: labels of a metric that is always 1, to be joined with others.
type Identity struct {
	Adapter, Generation string
	Driver              string // its version
	Firmware, Board     string // version that the device runs, and PSID
}

var identityDesc = prometheus.NewDesc("softvpi_adapter_info", "What an adapter is: the driver's version, the firmware that its device "+
	"runs, and the PSID of its board. Always 1.", []string{"adapter", "generation", "driver_version", "firmware_version", "board_id"}, nil)

// identities serves what adapters are.
type identities func() []Identity

// Describe implements prometheus.Collector.
func (f identities) Describe(out chan<- *prometheus.Desc) { out <- identityDesc }

// Collect implements prometheus.Collector.
func (f identities) Collect(out chan<- prometheus.Metric) {
	for _, i := range f() {
		out <- prometheus.MustNewConstMetric(identityDesc, prometheus.GaugeValue, 1, i.Adapter, i.Generation, i.Driver, i.Firmware, i.Board)
	}
}
