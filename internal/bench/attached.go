package bench

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/bench/worker"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// attached measures two processes that are attached to one driver, compared with memcpy and with TCP on
// the loopback interface.
func (r *runner) attached() error {
	figures := r.choose(append(attachedFigures(), latencyFigures(0, 0.25)...))
	if len(figures) == 0 {
		return nil
	}
	p, stop, err := r.driven(false)
	if err != nil {
		return err
	}
	defer stop()
	s := samples{}
	own := *p
	own.more = append(slices.Clone(p.more), "--memory", "own")
	for i := range r.o.Rounds {
		r.progress("%s: round %d of %d, bandwidth", p.name, i+1, r.o.Rounds)
		if r.needs("memcpy") {
			s.add("memcpy", memcpy(r.duration()))
		}
		if err := r.bandwidths(p, s, sizes); err != nil {
			return err
		}
		if err := r.four(p, s); err != nil {
			return err
		}
		if r.needs("own") {
			row, err := r.rdma(&own, ndperf.Test{Verb: ndperf.Write, Measure: ndperf.Bandwidth}, "-s", fmt.Sprint(large), "-D", r.seconds())
			if err != nil {
				return err
			}
			s.add("own", row.Gbps)
		}
		if r.needs(kernelCopy) {
			if v, err := r.copied(p); err == nil {
				s.add(kernelCopy, v)
			} else if i == 0 {
				r.report.skip(p.name+", process_vm_writev", err.Error())
			}
		}
		if installed("iperf3") && r.needs("iperf3 4K") {
			v, err := r.iperf3(p, "4K")
			if err != nil {
				return err
			}
			s.add("iperf3 4K", v)
		}
		r.progress("%s: round %d of %d, latency", p.name, i+1, r.o.Rounds)
		if err := r.latencies(p, s); err != nil {
			return err
		}
	}
	r.report.add(p.name, s, figures...)
	return nil
}

// kernelCopy is the sample of what a loop of process_vm_writev copies to the memory of another process: the most that
// writes to a program's own memory can do.
const kernelCopy = "process_vm_writev"

// copied measures it with as much memory as the writes cycle through, in large pages, as theirs is moved to.
func (r *runner) copied(p *path) (gbps float64, err error) {
	server, err := r.worker(p, p.server)
	if err != nil {
		return 0, err
	}
	defer server.end()
	client, err := r.worker(p, p.client)
	if err != nil {
		return 0, err
	}
	defer client.end()
	var to worker.FarMemory
	if err := server.call("lend", setSize, &to); err != nil {
		return 0, err
	}
	err = client.call("copy", worker.CopyArgs{To: to, Bytes: large, Seconds: r.o.Seconds}, &gbps)
	return gbps, err
}

func attachedFigures() []figure {
	const copied = "memcpy of 1 MB blocks"
	all := []figure{
		{"write of 1 MB", "Gb/s", "write1048576", copied, "memcpy", timesAtLeast(0.85)},
		{"send of 1 MB", "Gb/s", "send1048576", copied, "memcpy", nil},
		{"read of 1 MB", "Gb/s", "read1048576", copied, "memcpy", nil},
		{"write of 1 MB, the program's own memory", "Gb/s", "own", copied, "memcpy", timesAtLeast(0.4)},
		{"process_vm_writev of 1 MB blocks", "Gb/s", kernelCopy, copied, "memcpy", nil},
		{"write of 1 MB, the program's own memory, beside that", "Gb/s", "own", "process_vm_writev of 1 MB blocks", kernelCopy, nil},
		{"write of 4 KB", "Gb/s", "write4096", "iperf3 -l 4K", "iperf3 4K", timesAtLeast(3)},
		{"send of 4 KB", "Gb/s", "send4096", "iperf3 -l 4K", "iperf3 4K", timesAtLeast(3)},
		{"read of 4 KB", "Gb/s", "read4096", "iperf3 -l 4K", "iperf3 4K", nil},
		{"64 B writes, one queue pair", "M/s", "write64 rate", "", "", atLeast(3)},
		{"64 B writes, four queue pairs", "M/s", "four rate", "", "", nil},
		{"64 B sends, one queue pair", "M/s", "send64 rate", "", "", atLeast(3)},
	}
	for _, size := range []int{64, 1024, 65536} {
		for _, verb := range verbs {
			all = append(all, figure{name: fmt.Sprintf("%s of %s", verb, inBytes(size)), unit: "Gb/s", sample: fmt.Sprint(verb, size)})
		}
	}
	return all
}

// driven returns a path between processes that are attached to a driver of its own; with one, everything
// runs on one processor.
func (r *runner) driven(one bool) (p *path, stop func(), err error) {
	a, b := randomPair()
	dir, err := os.MkdirTemp("", "vpi-bench-")
	if err != nil {
		return nil, nil, err
	}
	p = &path{name: "attached to one driver", server: side{addr: a}, client: side{addr: b}, more: []string{"--mode", "attached"},
		socket: filepath.Join(dir, "d.sock"), one: one}
	p.env = []string{paths.SocketVariable + "=" + p.socket, paths.StateVariable + "=" + filepath.Join(dir, "state"),
		"XDG_CONFIG_HOME=" + dir}
	x, err := r.driver(p, side{}, p.server.addr, p.client.addr)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	p.driver = x.cmd.Process.Pid
	return p, func() {
		_ = x.cmd.Process.Signal(os.Interrupt)
		_ = x.cmd.Wait()
		_ = os.RemoveAll(dir)
	}, nil
}

// driver starts a driver with adapters at these addresses where the side is.
func (r *runner) driver(p *path, s side, addrs ...string) (*process, error) {
	var adapters []string
	for i, addr := range addrs {
		adapters = append(adapters, fmt.Sprintf("Ethernet %d=%s", i+1, addr))
	}
	return r.driverOf(p, s, adapters...)
}

// driverOf starts a driver with adapters as its option --adapter describes them.
func (r *runner) driverOf(p *path, s side, adapters ...string) (*process, error) {
	args := r.own("up")
	for _, a := range adapters {
		args = append(args, "--adapter", a)
	}
	return r.until(r.command(p, args), s, "listening")
}

// until starts a process that serves, and waits until it says so.
func (r *runner) until(x *process, s side, serving string) (*process, error) {
	x.cmd.Stdout = nil
	out, err := x.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.begin(x); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "programs cannot attach: "); ok {
			_ = x.cmd.Process.Kill()
			_ = x.cmd.Wait()
			return nil, errSkip{text}
		}
		if strings.HasPrefix(lines.Text(), serving) {
			go io.Copy(io.Discard, out)
			return x, nil
		}
	}
	return nil, fmt.Errorf("%s did not come up: %w", x.cmd.Args[1], cmp.Or(x.wait(), errors.New("it ended")))
}
