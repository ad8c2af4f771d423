package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// side is where a process runs: on this host, or in a network namespace.
type side struct {
	addr      string
	start     func(*exec.Cmd) error // nil: on this host
	processor string                // pins everything to this processor; empty: no pinning
	socket    string                // of the side's driver; empty: that of the path
	function  string                // virtual function of programs; empty: none
}

// placed prefixes a command so that it runs on the side's processor.
func (s side) placed(args []string) []string {
	if s.processor == "" {
		return args
	}
	return append([]string{"taskset", "-c", s.processor}, args...)
}

// attached prefixes a command so that it finds the side's driver.
func (s side) attached(args []string) []string {
	if s.socket == "" {
		return args
	}
	more := []string{"env", paths.SocketVariable + "=" + s.socket}
	if s.function != "" {
		more = append(more, paths.FunctionVariable+"="+s.function)
	}
	return append(more, args...)
}

// path is a pair of sides between which to measure.
type path struct {
	name           string
	server, client side
	env            []string
	more           []string // options for every tool
	socket         string   // of the driver; empty: the adapters are in the programs
	driver         int      // process ID of the driver
	one            bool     // everything runs on one processor
	port           uint16   // of RoCE v2; 0: the standard port
	worker         []string // command of the workers; empty: this program
}

// apart returns the path with its sides on two processors, if there are two, and taskset.
func (p *path) apart() *path {
	q := *p
	if n := runtime.NumCPU(); n > 1 && !p.one && installed("taskset") {
		q.server.processor, q.client.processor = strconv.Itoa(n-2), strconv.Itoa(n-1)
	}
	return &q
}

// polling returns the path for workers that poll with adapters of their own: unless GOMAXPROCS is set,
// their Go code runs on one processor at a time, like that of the measuring tools (docs/tools.md).
func (p *path) polling() *path {
	q := *p
	if p.socket == "" && os.Getenv("GOMAXPROCS") == "" {
		q.env = append(slices.Clip(p.env), "GOMAXPROCS=1")
	}
	return &q
}

// process is a started command whose output is read.
type process struct {
	cmd *exec.Cmd
	out bytes.Buffer
	err bytes.Buffer
}

func (r *runner) command(p *path, args []string) *process {
	if p.one {
		args = append([]string{"taskset", "-c", strconv.Itoa(runtime.NumCPU() - 1)}, args...)
	}
	x := &process{cmd: exec.CommandContext(r.ctx, args[0], args[1:]...)}
	x.cmd.Env = append(os.Environ(), p.env...)
	if p.one {
		x.cmd.Env = append(x.cmd.Env, "GOMAXPROCS=1")
	}
	x.cmd.Stdout, x.cmd.Stderr = &x.out, &x.err
	return x
}

func (s side) begin(x *process) error {
	if s.start != nil {
		return s.start(x.cmd)
	}
	return x.cmd.Start()
}

func (x *process) wait() error {
	if err := x.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(x.cmd.Args[1:], " "), err, strings.TrimSpace(x.err.String()))
	}
	return nil
}

// own returns the arguments as a command of this program.
func (r *runner) own(args ...string) []string { return append([]string{r.exe}, args...) }

// pair starts a server, waits for a line of output that contains ready, which says that it serves, runs
// the client and returns the client's output. Endless servers are then killed; the others end by
// themselves.
func (r *runner) pair(p *path, ready string, endless bool, server, client []string) ([]byte, error) {
	s := r.command(p, p.server.placed(server))
	lines, w := io.Pipe()
	s.cmd.Stdout = w
	s.cmd.Stderr = io.MultiWriter(w, &s.err)
	if err := p.server.begin(s); err != nil {
		return nil, err
	}
	in := bufio.NewReader(lines)
	finished := make(chan error, 1)
	go func() {
		finished <- s.wait()
		w.Close()
	}()
	for line := ""; !strings.Contains(line, ready); {
		var err error
		if line, err = in.ReadString('\n'); err != nil {
			return nil, errors.Join(err, <-finished)
		}
	}
	go io.Copy(io.Discard, in)
	c := r.command(p, p.client.placed(client))
	err := p.client.begin(c)
	if err == nil {
		err = c.wait()
	}
	if err != nil || endless {
		s.cmd.Process.Kill()
	}
	ended := <-finished
	if err != nil {
		return nil, errors.Join(err, ended)
	}
	if endless {
		ended = nil
	}
	return c.out.Bytes(), ended
}

// rdma runs one of the benchmarks and returns the client's row.
func (r *runner) rdma(p *path, test ndperf.Test, options ...string) (ndperf.Row, error) {
	server := append([]string{r.exe, test.Name(), "-S", p.server.addr, "--json"}, p.more...)
	client := append([]string{r.exe, test.Name(), "-C", p.server.addr, "-L", p.client.addr, "--json"}, p.more...)
	out, err := r.pair(p, "serving at", false, p.server.attached(server), p.client.attached(append(client, options...)))
	if err != nil {
		return ndperf.Row{}, err
	}
	var report ndperf.Report
	if err := json.Unmarshal(out, &report); err != nil {
		return ndperf.Row{}, fmt.Errorf("%s: %w", test.Name(), err)
	}
	if len(report.Results) != 1 {
		return ndperf.Row{}, fmt.Errorf("%s: %d results", test.Name(), len(report.Results))
	}
	return report.Results[0].Client, nil
}

// tcp runs the plain TCP sender.
func (r *runner) tcp(p *path, size int, seconds string) (TCPResult, error) {
	at := join(p.server.addr, "7002")
	out, err := r.pair(p, "serving at", false, r.own("bench-tcp", "--server", at),
		r.own("bench-tcp", "--client", at, "--size", fmt.Sprint(size), "--seconds", seconds))
	if err != nil {
		return TCPResult{}, err
	}
	var x TCPResult
	err = json.Unmarshal(out, &x)
	return x, err
}

func join(addr, port string) string {
	if strings.Contains(addr, ":") {
		return "[" + addr + "]:" + port
	}
	return addr + ":" + port
}

// iperf3 returns the Gb/s (2^30 bits) of iperf3 with blocks of this length.
func (r *runner) iperf3(p *path, length string) (float64, error) {
	out, err := r.pair(p, "listening", false, []string{"iperf3", "-s", "-1", "--forceflush", "-B", p.server.addr, "-p", "7003"},
		[]string{"iperf3", "-c", p.server.addr, "-p", "7003", "-t", "1", "-l", length, "-J"})
	if err != nil {
		return 0, err
	}
	var x struct {
		End struct {
			Received struct {
				Bits float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	err = json.Unmarshal(out, &x)
	return x.End.Received.Bits / (1 << 30), err
}

// sockperf returns the one-way latency of sockperf over TCP with the smallest
// messages that it sends, median and 99 %, in microseconds.
func (r *runner) sockperf(p *path, more ...string) (typical, p99 float64, err error) {
	at := append([]string{"--tcp", "-i", p.server.addr, "-p", "7004"}, more...)
	out, err := r.pair(p, "SERVER", true, append([]string{"sockperf", "sr"}, at...),
		append([]string{"sockperf", "pp", "-t", "1", "-m", "14"}, at...))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(out)) {
		if _, text, ok := strings.Cut(line, "percentile 50.000 ="); ok {
			fmt.Sscan(text, &typical)
		}
		if _, text, ok := strings.Cut(line, "percentile 99.000 ="); ok {
			fmt.Sscan(text, &p99)
		}
	}
	if typical == 0 {
		return 0, 0, errors.New("sockperf printed no percentiles")
	}
	return typical, p99, nil
}
