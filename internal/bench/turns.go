package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// feature is something whose cost for writes between two drivers is measured: with it and without.
type feature struct {
	part, name string
	least      float64 // of the bandwidth without it
	// set configures the driver of a side before a sample, and end, if there is one, after it.
	set func(p *path, x side, on bool) error
	end func(p *path, x side) error
}

// turnSizes are the sizes of the writes.
var turnSizes = []int{4096, 65536, large}

// turns is how often per round each size is written with the feature and without, one after the other: what else the machine does changes
// from second to second, and has to meet both alike.
const turns = 3

// inTurns measures a feature.
func (r *runner) inTurns(f feature) error {
	figures := r.choose(f.figures())
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
		r.progress("%s: round %d of %d", f.part, i+1, r.o.Rounds)
		for range turns {
			for _, size := range turnSizes {
				if err := r.turn(f, p, s, size, order); err != nil {
					return err
				}
			}
			slices.Reverse(order)
		}
	}
	r.report.add(f.part, s, figures...)
	return nil
}

func (f *feature) figures() (all []figure) {
	for _, size := range turnSizes {
		all = append(all, figure{fmt.Sprintf("write of %s, %s", inBytes(size), f.name), "Gb/s", turnSample(size, true), "off",
			turnSample(size, false), timesAtLeast(f.least)})
	}
	return all
}

func turnSample(size int, on bool) string { return fmt.Sprintf("write%d on %v", size, on) }

// turn measures writes of a size with the feature and without.
func (r *runner) turn(f feature, p *path, s samples, size int, order []bool) error {
	for _, on := range order {
		if !r.needs(turnSample(size, on)) {
			continue
		}
		for _, x := range []side{p.server, p.client} {
			if err := f.set(p, x, on); err != nil {
				return err
			}
		}
		row, err := r.rdma(p, ndperf.Test{Verb: ndperf.Write, Measure: ndperf.Bandwidth}, "-s", fmt.Sprint(size), "-D", r.seconds())
		if err != nil {
			return err
		}
		s.add(turnSample(size, on), row.Gbps)
		for _, x := range []side{p.server, p.client} {
			if f.end == nil {
				break
			}
			if err := f.end(p, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// configure runs a command at the driver of a side.
func (r *runner) configure(p *path, x side, args ...string) error {
	c := r.command(p, x.attached(r.own(args...)))
	if err := c.cmd.Start(); err != nil {
		return err
	}
	return c.wait()
}

// pairAdapter is the name of the adapter of each driver.
const pairAdapter = "x"

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
		d, err := r.driverOf(&q, side{}, fmt.Sprintf("%s=%s,path=wire", pairAdapter, x.addr))
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("driver at %s: %w", x.addr, err)
		}
		running = append(running, d)
	}
	return p, stop, nil
}
