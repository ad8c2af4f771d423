package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/os/paths"
)

// threadKeys are those with which queues have threads on two processors too.
var threadKeys = []string{"*RSSProfile=4"}

// frameKeys are those without which frames pass one by one, as they are.
var frameKeys = []string{"*LsoV2IPv4=0", "*LsoV2IPv6=0", "*TCPUDPChecksumOffloadIPv4=0", "*TCPUDPChecksumOffloadIPv6=0",
	"*IPChecksumOffloadIPv4=0", "*RscIPv4=0", "*RscIPv6=0"}

// mtus are those that are measured.
var mtus = []int{1500, 9000}

// hosts measures TCP between hosts at two Ethernet functions of one driver, beside a program that does nothing but pass frames from
// TAP to TAP, and beside a veth: what a second of processor time carries, of both ends' and of what is between them. The loop beside
// the veth shows what anything can reach there that a host's frames pass by a TAP: they are copied twice more.
func (r *runner) hosts() error {
	const unit, loop = "Gb/s a processor", "a loop from TAP to TAP"
	var figures []figure
	for _, mtu := range mtus {
		name := func(text string) string { return withMTU(text, mtu) }
		figures = append(figures,
			figure{name("TCP, one stream"), unit, name("one"), loop, name("one loop"), timesAtLeast(0.9)},
			figure{name("TCP, one stream, beside veth"), unit, name("one"), "veth", name("one veth"), timesAtLeast(0.55)},
			figure{name("the loop, one stream, beside veth"), unit, name("one loop"), "veth", name("one veth"), nil},
			figure{name("TCP, four streams"), unit, name("four"), loop, name("four loop"), nil},
			figure{name("TCP, four streams, beside veth"), unit, name("four"), "veth", name("four veth"), nil},
			figure{name("the loop, four streams, beside veth"), unit, name("four loop"), "veth", name("four veth"), nil},
			figure{name("TCP, four streams, threads for queues"), unit, name("threads"), "the loop alone", name("four"), nil},
			figure{name("TCP frame by frame, without offloads"), unit, name("frames"), loop + " without headers", name("frames loop"),
				timesAtLeast(0.8)})
	}
	if figures = r.choose(append(figures, shareFigures...)); len(figures) == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		return errSkip{"not root"}
	}
	s := samples{}
	for _, mtu := range mtus {
		if err := r.hostsOf(mtu, s); err != nil {
			return err
		}
	}
	if err := r.shares(s); err != nil {
		return err
	}
	r.report.add("hosts", s, figures...)
	return nil
}

// hostRun is a measurement: so many streams, through what was made first.
type hostRun struct {
	through *through
	streams int
	sample  string
}

// through is what is between two hosts, each a network namespace with one interface.
type through struct {
	*path
	pid string // of the process between them; empty: there is none
	// rdma is for programs of RDMA, at the driver between them; nil: it has no adapters for them.
	rdma *path
	// enclose gives the hosts Linux's VXLAN over their interfaces.
	enclose func() error
	done    func()
}

// hostsOf measures with an MTU. What is between the hosts is made once, and has its turns.
func (r *runner) hostsOf(mtu int, s samples) error {
	var runs []hostRun
	for _, c := range []struct {
		open    func(mtu int) (*through, error)
		samples map[string]int // with how many streams each
	}{
		{r.throughVeth, map[string]int{"one veth": 1, "four veth": 4}},
		{func(mtu int) (*through, error) { return r.throughDriver(mtu) }, map[string]int{"one": 1, "four": 4}},
		{func(mtu int) (*through, error) { return r.throughLoop(mtu, "--virtio") }, map[string]int{"one loop": 1, "four loop": 4}},
		{func(mtu int) (*through, error) { return r.throughDriver(mtu, threadKeys...) }, map[string]int{"threads": 4}},
		{func(mtu int) (*through, error) { return r.throughDriver(mtu, frameKeys...) }, map[string]int{"frames": 1}},
		{func(mtu int) (*through, error) { return r.throughLoop(mtu) }, map[string]int{"frames loop": 1}},
	} {
		var x *through
		for _, name := range slices.Sorted(maps.Keys(c.samples)) {
			sample := withMTU(name, mtu)
			if !r.needs(sample) {
				continue
			}
			if x == nil {
				var err error
				if x, err = c.open(mtu); err != nil {
					return err
				}
				defer x.done()
			}
			runs = append(runs, hostRun{x, c.samples[name], sample})
		}
	}
	for i := range r.o.Rounds {
		r.progress("hosts, MTU %d: round %d of %d", mtu, i+1, r.o.Rounds)
		for _, x := range runs {
			v, err := r.streams(x.through, x.streams)
			if err != nil {
				return fmt.Errorf("%s: %w", x.sample, err)
			}
			s.add(x.sample, v)
		}
	}
	return nil
}

func withMTU(text string, mtu int) string { return fmt.Sprintf("%s, MTU %d", text, mtu) }

// streams returns the Gb/s of streams of TCP for each processor that they, and what is between their ends, keep busy.
func (r *runner) streams(t *through, n int) (float64, error) {
	own := func() (time.Duration, error) {
		if t.pid == "" {
			return 0, nil
		}
		return processorTime(t.pid)
	}
	before, err := own()
	if err != nil {
		return 0, err
	}
	x, err := r.tcpStreams(t.path, t.server.addr, n, r.seconds())
	if err != nil {
		return 0, err
	}
	after, err := own()
	if err != nil {
		return 0, err
	}
	return float64(x.Bytes) * 8 / (1 << 30) / (x.Busy + (after - before).Seconds()), nil
}

// tcpStreams runs streams of TCP to an address of the server's side.
func (r *runner) tcpStreams(p *path, addr string, n int, seconds string) (x StreamsResult, err error) {
	at := join(addr, "7006")
	out, err := r.pair(p, "serving at", false, r.own("bench-tcp", "--server", at, "--streams", strconv.Itoa(n)),
		r.own("bench-tcp", "--client", at, "--streams", strconv.Itoa(n), "--seconds", seconds))
	if err != nil {
		return x, err
	}
	return x, json.Unmarshal(out, &x)
}

func (r *runner) throughVeth(mtu int) (*through, error) {
	p, done, err := vethPath(mtu)
	if err != nil {
		return nil, errSkip{err.Error()}
	}
	return &through{path: p, done: func() { _ = done() }}, nil
}

// throughDriver starts a driver with two adapters at one port. Keys are set: "*RSS=0".
func (r *runner) throughDriver(mtu int, keys ...string) (*through, error) {
	return r.throughProcess(mtu, func(p *path, dir string) (*process, error) {
		var adapters []string
		for i, name := range []string{"a", "b"} {
			adapters = append(adapters, fmt.Sprintf("%s=203.0.113.%d/24,tap=vpi,linkmtu=%d,mac=02:00:00:00:00:0%s,host=tap:vpi%d", name, i+1, mtu, name,
				i))
		}
		p.server.socket = filepath.Join(dir, "d.sock")
		p.env = []string{paths.SocketVariable + "=" + p.server.socket, paths.StateVariable + "=" + filepath.Join(dir, "state"),
			"XDG_CONFIG_HOME=" + dir}
		x, err := r.driverOf(p, p.server, adapters...)
		if err != nil {
			return nil, err
		}
		var commands [][]string
		for _, name := range []string{"a", "b"} {
			for _, key := range keys {
				key, value, _ := strings.Cut(key, "=")
				commands = append(commands, r.own("reg", "add", key, "--adapter", name, "/d", value))
			}
			commands = append(commands, r.own("adapter", "restart", name))
		}
		for _, args := range commands {
			c := r.command(p, args)
			if err = p.server.begin(c); err == nil {
				err = c.wait()
			}
			if err != nil {
				x.stop()
				return nil, err
			}
		}
		return x, nil
	})
}

// throughLoop starts a program that passes frames, with options.
func (r *runner) throughLoop(mtu int, options ...string) (*through, error) {
	return r.throughProcess(mtu, func(p *path, _ string) (*process, error) {
		return r.until(r.command(p, r.own(append([]string{"bench-forward"}, options...)...)), p.server, "ready")
	})
}

// throughProcess starts a process that makes the interfaces vpi0 and vpi1, and gives each host one.
func (r *runner) throughProcess(mtu int, start func(p *path, dir string) (*process, error)) (*through, error) {
	p, spaces, done, err := hostPath()
	if err != nil {
		return nil, errSkip{err.Error()}
	}
	dir, err := os.MkdirTemp("", "vpi-bench-")
	if err != nil {
		return nil, errors.Join(err, done())
	}
	x, err := start(p, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir), done())
	}
	t := &through{path: p, pid: strconv.Itoa(x.cmd.Process.Pid), enclose: spaces.enclose, done: func() {
		x.stop()
		_, _ = os.RemoveAll(dir), done()
	}}
	if err := spaces.adopt(mtu); err != nil {
		t.done()
		return nil, err
	}
	return t, nil
}
