package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/os/paths"
)

// tunnelRow is a way of TCP through a tunnel, beside Linux's own VXLAN.
type tunnelRow struct {
	name  string
	least float64 // of Linux's; 0: no aim
	open  func() (*through, error)
}

// tunnels measures one stream of TCP between two hosts through a tunnel, beside Linux's own VXLAN at both, over two TAPs between which a
// program does nothing but pass frames, super-frames in tunnels as they are: the best that anything can do whose hosts' frames pass by
// TAPs. Each round measures all in random order, and a row has the median of the rounds' ratios, and the interval in which the true one
// lies with 95 %; the aim is met if all of it meets it.
func (r *runner) tunnels() error {
	rows := []tunnelRow{
		{"TCP of a virtual subnet in VXLAN", 0.8, func() (*through, error) { return r.throughOverlay("vxlan") }},
		{"TCP of a virtual subnet in NVGRE", 0, func() (*through, error) { return r.throughOverlay("nvgre") }},
		{"TCP in Linux's VXLAN, by Ethernet functions", 0.8, func() (*through, error) {
			return r.enclosed(func() (*through, error) { return r.throughDriver(vxlanMTU) })
		}},
	}
	rows = slices.DeleteFunc(rows, func(x tunnelRow) bool { return !r.o.names(x.name) })
	if len(rows) == 0 {
		return nil
	}
	linux, err := r.enclosed(func() (*through, error) { return r.throughLoop(vxlanMTU, "--virtio", "--tunnels") })
	if err != nil { // most likely the system has no offloads for tunnels
		return errSkip{err.Error()}
	}
	defer linux.done()
	runs := []*through{linux}
	for _, x := range rows {
		t, err := x.open()
		if err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		defer t.done()
		runs = append(runs, t)
	}
	rates, costs := make([]samples, len(runs)), make([]samples, len(runs))
	for i := range runs {
		rates[i], costs[i] = samples{}, samples{}
	}
	for i := range r.o.Rounds {
		r.progress("tunnels: round %d of %d", i+1, r.o.Rounds)
		rate, cost := make([]float64, len(runs)), make([]float64, len(runs))
		for _, k := range rand.Perm(len(runs)) {
			if rate[k], cost[k], err = r.streamRate(runs[k]); err != nil {
				return err
			}
		}
		for k := range runs {
			rates[k].turn(rate[k], rate[0])
			costs[k].turn(cost[k], cost[0])
		}
	}
	for k, x := range rows {
		r.report.Rows = append(r.report.Rows, x.row("", "Gb/s", x.least, rates[k+1]), x.row(", a processor", "Gb/s a processor", 0, costs[k+1]))
	}
	return nil
}

// vxlanMTU is that of what carries the tunnels.
const vxlanMTU = 1500

func (x *tunnelRow) row(suffix, unit string, least float64, s samples) Row {
	var aim *Target
	if least > 0 {
		aim = timesAtLeast(least)
	}
	return s.paired(Row{Part: "tunnels", Name: x.name + suffix, Unit: unit, Peer: "Linux's VXLAN and a loop from TAP to TAP"}, aim)
}

// streamRate returns the Gb/s of one stream, and that for each processor that is kept busy.
func (r *runner) streamRate(t *through) (rate, cost float64, err error) {
	before, err := processorTime(t.pid)
	if err != nil {
		return 0, 0, err
	}
	x, err := r.tcpStreams(t.path, t.server.addr, 1, r.seconds())
	if err != nil {
		return 0, 0, err
	}
	after, err := processorTime(t.pid)
	gigabits := float64(x.Bytes) * 8 / (1 << 30)
	return gigabits / x.Seconds, gigabits / (x.Busy + (after - before).Seconds()), err
}

// enclosed adds Linux's VXLAN to the interfaces of both hosts.
func (r *runner) enclosed(open func() (*through, error)) (*through, error) {
	t, err := open()
	if err != nil {
		return nil, err
	}
	if err := t.enclose(); err != nil {
		t.done()
		return nil, errSkip{err.Error()}
	}
	t.server.addr, t.client.addr = enclosedAddrs[0].IP.String(), enclosedAddrs[1].IP.String()
	return t, nil
}

// throughOverlay starts a driver with two adapters at a switch in memory, and a function at each in one virtual subnet.
func (r *runner) throughOverlay(encapsulation string) (*through, error) {
	const vxlan = 50 // bytes of headers outside
	return r.throughProcess(vxlanMTU-vxlan, func(p *path, dir string) (*process, error) {
		p.server.socket = filepath.Join(dir, "d.sock")
		p.env = []string{paths.SocketVariable + "=" + p.server.socket, paths.StateVariable + "=" + filepath.Join(dir, "state"),
			"XDG_CONFIG_HOME=" + dir}
		x, err := r.driverOf(p, p.server, "a=203.0.113.1/24,switch=s", "b=203.0.113.2/24,switch=s")
		if err != nil {
			return nil, err
		}
		for _, line := range []string{
			"overlay add address adapter=a address=198.18.0.1/24 encapsulation=" + encapsulation,
			"overlay add address adapter=b address=198.18.0.2/24 encapsulation=" + encapsulation,
			"overlay add record vsid=5001 customer=" + p.server.addr + " mac=02:00:00:00:01:00 provider=198.18.0.1",
			"overlay add record vsid=5001 customer=" + p.client.addr + " mac=02:00:00:00:01:01 provider=198.18.0.2",
			"vf create a va mac=02:00:00:00:01:00 vsid=5001 rdma=off tap=vpi0",
			"vf create b vb mac=02:00:00:00:01:01 vsid=5001 rdma=off tap=vpi1",
		} {
			c := r.command(p, r.own(strings.Fields(line)...))
			if err := errors.Join(p.server.begin(c), c.wait()); err != nil {
				x.stop()
				return nil, fmt.Errorf("%s: %w", line, err)
			}
		}
		return x, nil
	})
}
