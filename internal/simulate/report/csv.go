package report

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/softvpi/softvpi/internal/simulate"
)

// Table is a CSV file of a result. Its first column is the run, for sweeps.
type Table struct {
	Name string
	Head []string
	rows func(*simulate.Result, func(...string))
}

// Tables are all of them.
var Tables = []Table{
	{"flows", []string{"flow", "from", "to", "priority", "bytes", "received_bytes", "start_us", "end_us", "fct_us", "ideal_us", "slowdown",
		"goodput_gbps", "packets", "sent_again", "marked", "cnps"}, flowRows},
	{"series", []string{"time_us", "sum_gbps", "jain", "marks", "cnps", "pauses"}, seriesRows},
	{"throughput", []string{"time_us", "flow", "gbps"}, rateRows},
	{"queues", []string{"time_us", "port", "kb"}, queueRows},
	{"ports", []string{"node", "port", "peer", "rate_gbps", "used", "priority", "frames", "bytes", "marked", "drops", "peak_kb", "pauses_sent",
		"pauses_received", "pause_sent_us", "paused_us", "storms"}, portRows},
}

// Write writes the table of all runs.
func (t Table) Write(w io.Writer, all []simulate.Labelled) error {
	c := csv.NewWriter(w)
	err := c.Write(append([]string{"run"}, t.Head...))
	for _, r := range all {
		t.rows(r.Result, func(cells ...string) {
			if err == nil {
				err = c.Write(append([]string{r.Label}, cells...))
			}
		})
	}
	c.Flush()
	if err == nil {
		err = c.Error()
	}
	return err
}

func f(x float64) string { return strconv.FormatFloat(x, 'g', 10, 64) }
func i(x int) string     { return strconv.Itoa(x) }
func u(x uint64) string  { return strconv.FormatUint(x, 10) }

// maybe is empty for what has not happened.
func maybe(x *float64) string {
	if x == nil {
		return ""
	}
	return f(*x)
}

func flowRows(x *simulate.Result, row func(...string)) {
	for _, y := range x.Flows {
		row(i(y.Number), y.From, y.To, i(int(y.Priority)), i(int(y.Bytes)), i(int(y.Got)), maybe(y.Start), maybe(y.End), maybe(y.FCT),
			maybe(y.Ideal), maybe(y.Slowdown), f(y.Goodput), u(y.Packets), u(y.Again), u(y.Marked), u(y.CNPs))
	}
}

func seriesRows(x *simulate.Result, row func(...string)) {
	s := &x.Series
	for k, at := range s.Time {
		row(f(at), f(s.Sum[k]), f(s.Jain[k]), u(s.Marks[k]), u(s.CNPs[k]), u(s.Pauses[k]))
	}
}

func rateRows(x *simulate.Result, row func(...string)) {
	for _, y := range x.Series.Flows {
		for k, r := range y.Rate {
			row(f(x.Series.Time[k]), i(y.Flow), f(r))
		}
	}
}

func queueRows(x *simulate.Result, row func(...string)) {
	for _, y := range x.Series.Queues {
		for k, kb := range y.KB {
			row(f(x.Series.Time[k]), y.Port, f(kb))
		}
	}
}

func portRows(x *simulate.Result, row func(...string)) {
	for _, y := range x.Ports {
		for _, q := range y.Priorities {
			row(y.Node, i(y.Port), y.Peer, f(y.Rate), f(y.Used), i(q.Priority), u(q.Frames), u(q.Bytes), u(q.Marked), u(q.Drops), f(q.Peak),
				u(q.Sent), u(q.Received), f(q.SentUs), f(q.Paused), u(q.Storms))
		}
	}
}
