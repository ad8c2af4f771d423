package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// qosSizes are the sizes of the writes that are measured with quality of service and without.
var qosSizes = []int{4096, 65536, large}

// qosTurns is how often per round each size is written with it and without, one after the other: what else the machine does changes from
// second to second, and has to meet both alike.
const qosTurns = 3

// qos measures what quality of service costs writes between two drivers, by UDP sockets, where nothing is marked and one class sends:
// congestion control at both, with ECN in all packets, and two traffic classes with shares.
func (r *runner) qos() error {
	figures := r.choose(qosFigures())
	if len(figures) == 0 {
		return nil
	}
	p, stop, err := r.drivers()
	if err != nil {
		return err
	}
	defer stop()
	s := samples{}
	order := []bool{false, true}
	for i := range r.o.Rounds {
		r.progress("qos: round %d of %d", i+1, r.o.Rounds)
		for range qosTurns {
			for _, size := range qosSizes {
				if err := r.qosTurn(p, s, size, order); err != nil {
					return err
				}
			}
			slices.Reverse(order)
		}
	}
	r.report.add("qos", s, figures...)
	return nil
}

func qosFigures() (all []figure) {
	for _, size := range qosSizes {
		all = append(all, figure{fmt.Sprintf("write of %s, congestion control and shares on", inBytes(size)), "Gb/s", qosSample(size, true), "off",
			qosSample(size, false), timesAtLeast(0.95)})
	}
	return all
}

func qosSample(size int, on bool) string { return fmt.Sprintf("write%d on %v", size, on) }

// qosTurn measures writes of a size with quality of service and without.
func (r *runner) qosTurn(p *path, s samples, size int, order []bool) error {
	for _, on := range order {
		if !r.needs(qosSample(size, on)) {
			continue
		}
		for _, x := range []side{p.server, p.client} {
			if err := r.setQoS(p, x, on); err != nil {
				return err
			}
		}
		row, err := r.rdma(p, ndperf.Test{Verb: ndperf.Write, Measure: ndperf.Bandwidth}, "-s", fmt.Sprint(size), "-D", r.seconds())
		if err != nil {
			return err
		}
		s.add(qosSample(size, on), row.Gbps)
	}
	return nil
}

// qosAdapter is the name of the adapter of each driver.
const qosAdapter = "x"

// setQoS configures the driver of a side.
func (r *runner) setQoS(p *path, x side, on bool) error {
	congestion, classes := "-Disable", []string{"prio-tc=default", "tc-bw=default"}
	if on {
		congestion, classes = "-Enable", []string{"prio-tc=3:1", "tc-bw=0:50,1:50"}
	}
	for _, args := range [][]string{
		{"mlx5cmd", "-QosConfig", "-Dcqcn", "-Name", qosAdapter, congestion}, append([]string{"qos", "set", qosAdapter}, classes...),
	} {
		c := r.command(p, x.attached(r.own(args...)))
		if err := c.cmd.Start(); err != nil {
			return err
		}
		if err := c.wait(); err != nil {
			return err
		}
	}
	return nil
}

// drivers returns a path between programs that are attached to two drivers, whose packets take UDP sockets.
func (r *runner) drivers() (p *path, stop func(), err error) {
	a, b := randomPair()
	dir, err := os.MkdirTemp("", "vpi-bench-")
	if err != nil {
		return nil, nil, err
	}
	p = &path{name: "two drivers", server: side{addr: a, socket: filepath.Join(dir, "a.sock")},
		client: side{addr: b, socket: filepath.Join(dir, "b.sock")}, more: []string{"--mode", "attached"}, socket: filepath.Join(dir, "a.sock"),
		env: []string{"XDG_CONFIG_HOME=" + dir}}
	var running []*process
	stop = func() {
		for _, x := range running {
			_ = x.cmd.Process.Signal(os.Interrupt)
			_ = x.cmd.Wait()
		}
		_ = os.RemoveAll(dir)
	}
	for _, x := range []side{p.server, p.client} {
		q := *p
		q.env = append(slices.Clone(p.env), paths.SocketVariable+"="+x.socket, paths.StateVariable+"="+x.socket+".state")
		d, err := r.driverOf(&q, side{}, fmt.Sprintf("%s=%s,path=wire", qosAdapter, x.addr))
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("driver at %s: %w", x.addr, err)
		}
		running = append(running, d)
	}
	return p, stop, nil
}
