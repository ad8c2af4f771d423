package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// idleFunctions is how many virtual functions a port of WinOF-2 has.
const idleFunctions = 127

// portCase is who talks to whom at which ports, beside the two adapters of a switch in memory without virtual functions.
type portCase struct {
	name    string
	least   float64 // of their bandwidth
	virtual bool    // two virtual functions of one port talk
	idle    int     // virtual functions that do nothing
}

var portCases = []portCase{
	{"between two virtual functions of one port", 0.9, true, 0},
	{"beside 127 idle virtual functions", 0.98, false, idleFunctions},
}

// portMeasure is something that is measured of each.
type portMeasure struct {
	name, unit string
	run        func(*runner, *through) (float64, error)
}

func portMeasures() (all []portMeasure) {
	for _, verb := range []ndperf.Verb{ndperf.Send, ndperf.Write} {
		for _, size := range []int{64 << 10, large} {
			all = append(all, portMeasure{fmt.Sprintf("%s of %s", verb, inBytes(size)), "Gb/s", func(r *runner, t *through) (float64, error) {
				row, err := r.rdma(t.rdma, ndperf.Test{Verb: verb, Measure: ndperf.Bandwidth}, "-s", fmt.Sprint(size), "-D", r.seconds())
				return row.Gbps, err
			}})
		}
	}
	return append(all,
		portMeasure{"write of 4 KB, latency", "us", func(r *runner, t *through) (float64, error) {
			row, err := r.rdma(t.rdma.apart(), ndperf.Test{Verb: ndperf.Write, Measure: ndperf.Latency}, "-s", "4096", "-D", r.seconds())
			return row.Latency.Typical, err
		}},
		portMeasure{"TCP of hosts at TAPs", "Gb/s", func(r *runner, t *through) (float64, error) {
			rate, _, err := r.streamRate(t)
			return rate, err
		}})
}

// row is what a case is by a measure.
func (c *portCase) row(m portMeasure, s samples) Row {
	aim := timesAtLeast(c.least)
	if m.unit == "us" {
		aim = timesAtMost(1 / c.least)
	}
	return s.paired(Row{Part: "functions", Name: m.name + ", " + c.name, Unit: m.unit, Peer: "two physical functions alone"}, aim)
}

// functions measures RDMA by packets, and TCP of hosts at TAPs, between two virtual functions of a port, and between two physical ones
// with virtual functions beside them that do nothing, next to two physical functions alone, all at switches in memory. Each round
// measures all in random order, and a row has the median of the rounds' ratios.
func (r *runner) functions() error {
	measures := portMeasures()
	wanted := func(c portCase, m portMeasure) bool { return r.o.names(m.name + ", " + c.name) }
	cases := slices.DeleteFunc(slices.Clone(portCases), func(c portCase) bool {
		return !slices.ContainsFunc(measures, func(m portMeasure) bool { return wanted(c, m) })
	})
	if len(cases) == 0 {
		return nil
	}
	runs := make([]*through, 0, len(cases)+1)
	for _, c := range append([]portCase{{}}, cases...) {
		t, err := r.throughPorts(c)
		if err != nil {
			return err
		}
		defer t.done()
		runs = append(runs, t)
	}
	got := map[string]samples{}
	for i := range r.o.Rounds {
		r.progress("functions: round %d of %d", i+1, r.o.Rounds)
		for _, m := range measures {
			if !slices.ContainsFunc(cases, func(c portCase) bool { return wanted(c, m) }) {
				continue
			}
			v := make([]float64, len(runs))
			for _, k := range rand.Perm(len(runs)) {
				var err error
				if v[k], err = m.run(r, runs[k]); err != nil {
					return fmt.Errorf("%s: %w", m.name, err)
				}
			}
			for k, c := range cases {
				name := m.name + c.name
				if got[name] == nil {
					got[name] = samples{}
				}
				got[name].turn(v[k+1], v[0])
			}
		}
	}
	for _, c := range cases {
		for _, m := range measures {
			if wanted(c, m) {
				r.report.Rows = append(r.report.Rows, c.row(m, got[m.name+c.name]))
			}
		}
	}
	return nil
}

// throughPorts starts a driver with the functions of a case. Programs of RDMA and the hosts of TCP have their addresses apart.
func (r *runner) throughPorts(c portCase) (*through, error) {
	const mtu = 1500
	var q path
	t, err := r.throughProcess(mtu, func(p *path, dir string) (*process, error) {
		p.server.socket = filepath.Join(dir, "d.sock")
		p.env = []string{paths.SocketVariable + "=" + p.server.socket, paths.StateVariable + "=" + filepath.Join(dir, "state"),
			"XDG_CONFIG_HOME=" + dir}
		q = *p
		q.more = []string{"--mode", "attached"}
		q.client.socket = p.server.socket
		q.server.addr, q.client.addr = "198.18.0.1", "198.18.0.2"
		hosts := [2]string{",host=tap:vpi0", ",host=tap:vpi1"}
		var lines []string
		if c.virtual {
			hosts = [2]string{}
			q.server.addr, q.client.addr, q.server.function, q.client.function = "198.18.0.11", "198.18.0.12", "va", "vb"
			lines = []string{
				"vf create a va mac=02:00:00:00:01:00 address=198.18.0.11/24 tap=vpi0",
				"vf create a vb mac=02:00:00:00:01:01 address=198.18.0.12/24 tap=vpi1",
			}
		}
		for i := range c.idle {
			lines = append(lines, fmt.Sprintf("vf create a i%d mac=02:00:00:00:02:%02x address=198.18.1.%d/16", i, i, i+1))
		}
		x, err := r.driverOf(p, p.server, "a=198.18.0.1/24,switch=s,path=wire"+hosts[0], "b=198.18.0.2/24,switch=s,path=wire"+hosts[1])
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			c := r.command(p, r.own(strings.Fields(line)...))
			if err := errors.Join(p.server.begin(c), c.wait()); err != nil {
				x.stop()
				return nil, fmt.Errorf("%s: %w", line, err)
			}
		}
		return x, nil
	})
	if err == nil {
		t.rdma = &q
	}
	return t, err
}
