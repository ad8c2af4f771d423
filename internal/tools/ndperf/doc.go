// Package ndperf is the benchmark engine behind nd_send_bw, nd_send_lat,
// nd_write_bw, nd_write_lat, nd_read_bw and nd_read_lat: bandwidth and latency
// of Send, RDMA Write and RDMA Read over NetworkDirect.
//
// A client opens one control connection and then one data connection per queue pair. The private data of
// every request says which of them it is (hello.go); over the control connection both sides exchange JSON
// messages (message.go): the parameters, the start and end of each size and the results, so that each side
// can show both.
package ndperf

import "github.com/softvpi/softvpi/internal/tools/tool"

// Verb is the operation to measure.
type Verb string

// The operations.
const (
	Send  Verb = "send"
	Write Verb = "write"
	Read  Verb = "read"
)

// Measure is the quantity to measure.
type Measure string

// The measures.
const (
	Bandwidth Measure = "bw"
	Latency   Measure = "lat"
)

// Test is one of the six benchmarks.
type Test struct {
	Verb    Verb
	Measure Measure
}

// Name returns the name of the tool that runs the test, such as nd_send_bw.
func (t Test) Name() string { return "nd_" + string(t.Verb) + "_" + string(t.Measure) }

// Tests lists all of them.
var Tests = []Test{
	{Send, Bandwidth}, {Send, Latency},
	{Write, Bandwidth}, {Write, Latency},
	{Read, Bandwidth}, {Read, Latency},
}

var _ tool.Main = Tests[0].Main
