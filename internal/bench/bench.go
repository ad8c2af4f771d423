package bench

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/paths"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// Options say what is measured.
type Options struct {
	Rounds  int     // interleaved runs, of which the median counts
	Seconds float64 // of each run
	// Paths are some of "loopback", "veth", "attached", "memcpy"; empty: all.
	Paths []string
}

// Paths lists the paths that there are.
var Paths = []string{"loopback", "veth", "attached", "memcpy"}

var sizes = []int{64, 1024, 4096, 65536, 1 << 20}

// samples are measurements by name; each name's median counts.
type samples map[string][]float64

func (s samples) add(name string, v float64) { s[name] = append(s[name], v) }

// median of a name; 0 where nothing was measured.
func (s samples) median(name string) float64 {
	v := slices.Sorted(slices.Values(s[name]))
	if len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}

// Run measures and prints Markdown tables.
func Run(ctx context.Context, w io.Writer, o Options) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	r := &runner{ctx, exe}
	fmt.Fprintf(w, "%s, %d rounds of %g s interleaved, medians. Gb/s = 2^30 bits of payload a second.\n", machine(), o.Rounds, o.Seconds)
	for _, tool := range []string{"iperf3", "sockperf"} {
		if _, err := exec.LookPath(tool); err != nil {
			fmt.Fprintf(w, "%s is not installed; its column is empty.\n", tool)
		}
	}
	want := func(name string) bool { return len(o.Paths) == 0 || slices.Contains(o.Paths, name) }
	if want("loopback") {
		if err := r.measure(w, loopback(), o); err != nil {
			return fmt.Errorf("loopback: %w", err)
		}
	}
	for _, mtu := range []int{9000, 1500} {
		if !want("veth") {
			break
		}
		p, closePath, err := vethPath(mtu)
		if err != nil {
			fmt.Fprintf(w, "\nveth: skipped, %v\n", err)
			break
		}
		if err := errors.Join(r.measure(w, p, o), closePath()); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if want("attached") {
		if err := r.attached(w, o); err != nil {
			return fmt.Errorf("attached: %w", err)
		}
	}
	if want("memcpy") && !want("attached") {
		fmt.Fprintf(w, "\nmemcpy, 1 MB blocks of 16 MB sets: %.1f Gb/s\n", Memcpy(time.Second))
	}
	return nil
}

// loopback is the path between two processes with embedded adapters.
func loopback() *path {
	a, b := randomPair()
	return &path{name: "loopback, embedded", server: side{addr: a}, client: side{addr: b}, more: []string{"--mode", "embedded"}}
}

func randomPair() (a, b string) {
	x := [4]byte{127, byte(16 + rand.N(200)), byte(rand.N(256)), 1}
	y := x
	y[3] = 2
	return netip.AddrFrom4(x).String(), netip.AddrFrom4(y).String()
}

// measure runs everything on a path and prints its tables.
func (r *runner) measure(w io.Writer, p *path, o Options) error {
	s := samples{}
	for range o.Rounds {
		if err := r.bandwidths(p, o, s, true); err != nil {
			return err
		}
		if err := r.latencies(p, o, s, true); err != nil {
			return err
		}
	}
	printBandwidths(w, p, s)
	printLatencies(w, p, s)
	return nil
}

func (r *runner) bandwidths(p *path, o Options, s samples, tcp bool) error {
	seconds := fmt.Sprint(o.Seconds)
	for _, size := range sizes {
		for _, verb := range []ndperf.Verb{ndperf.Write, ndperf.Send, ndperf.Read} {
			row, err := r.rdma(p, ndperf.Test{Verb: verb, Measure: ndperf.Bandwidth}, "-s", fmt.Sprint(size), "-D", seconds)
			if err != nil {
				return err
			}
			s.add(fmt.Sprint(verb, size), row.Gbps)
			s.add(fmt.Sprint(verb, size, "rate"), row.MessageRate)
		}
		if !tcp {
			continue
		}
		x, err := r.tcp(p, size, false, seconds)
		if err != nil {
			return err
		}
		s.add(fmt.Sprint("tcp", size), x.Gbps)
	}
	if _, err := exec.LookPath("iperf3"); err != nil || !tcp {
		return nil
	}
	v, err := r.iperf3(p)
	s.add("iperf3", v)
	return err
}

const latencyBytes = 64

func (r *runner) latencies(p *path, o Options, s samples, tcp bool) error {
	seconds := fmt.Sprint(o.Seconds)
	for _, verb := range []ndperf.Verb{ndperf.Write, ndperf.Send, ndperf.Read} {
		row, err := r.rdma(p, ndperf.Test{Verb: verb, Measure: ndperf.Latency}, "-s", fmt.Sprint(latencyBytes), "-D", seconds)
		if err != nil {
			return err
		}
		s.add(string(verb), row.Latency.Typical)
		s.add(string(verb)+"99", row.Latency.P99)
	}
	if !tcp {
		return nil
	}
	x, err := r.tcp(p, latencyBytes, true, seconds)
	if err != nil {
		return err
	}
	s.add("tcp", x.Typical)
	s.add("tcp99", x.P99)
	if _, err := exec.LookPath("sockperf"); err != nil {
		return nil
	}
	typical, p99, err := r.sockperf(p)
	s.add("sockperf", typical)
	s.add("sockperf99", p99)
	return err
}

// printBandwidths prints a row for each size; the columns of TCP only where it
// was measured.
func printBandwidths(w io.Writer, p *path, s samples) {
	fmt.Fprintf(w, "\n### %s: bandwidth, one queue pair\n\n| bytes | write Gb/s | send Gb/s | read Gb/s | write Mmsg/s |", p.name)
	tcp := len(s["tcp64"]) > 0
	if tcp {
		fmt.Fprint(w, " TCP Gb/s | iperf3 Gb/s | write / TCP | write / iperf3 |\n|---|---|---|---|---|---|---|---|---|\n")
	} else {
		fmt.Fprint(w, "\n|---|---|---|---|---|\n")
	}
	for _, size := range sizes {
		m := func(name string, more ...any) float64 {
			return s.median(name + fmt.Sprint(append([]any{size}, more...)...))
		}
		fmt.Fprintf(w, "| %d | %.2f | %.2f | %.2f | %.3f |", size, m("write"), m("send"), m("read"), m("write", "rate"))
		if tcp {
			iperf := 0.0
			if size == 1<<20 {
				iperf = s.median("iperf3")
			}
			fmt.Fprintf(w, " %s | %s | %s | %s |", number(m("tcp")), number(iperf), ratio(m("write"), m("tcp")), ratio(m("write"), iperf))
		}
		fmt.Fprintln(w)
	}
}

func printLatencies(w io.Writer, p *path, s samples) {
	fmt.Fprintf(w, "\n### %s: latency of %d bytes, us\n\n| | write | send | read (whole) |", p.name, latencyBytes)
	tcp := len(s["tcp"]) > 0
	if tcp {
		fmt.Fprint(w, " TCP | sockperf TCP | send / TCP | send / sockperf |\n|---|---|---|---|---|---|---|---|\n")
	} else {
		fmt.Fprint(w, "\n|---|---|---|---|\n")
	}
	for _, row := range [][2]string{{"median", ""}, {"99 %", "99"}} {
		m := func(name string) float64 { return s.median(name + row[1]) }
		fmt.Fprintf(w, "| %s | %.2f | %.2f | %.2f |", row[0], m("write"), m("send"), m("read"))
		if tcp {
			fmt.Fprintf(w, " %s | %s | %s | %s |", number(m("tcp")), number(m("sockperf")), ratio(m("send"), m("tcp")), ratio(m("send"), m("sockperf")))
		}
		fmt.Fprintln(w)
	}
}

func number(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", v)
}

func ratio(a, b float64) string {
	if b == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", a/b)
}

// attached measures two processes that are attached to one driver, next to
// memcpy, with both kinds of memory.
func (r *runner) attached(w io.Writer, o Options) error {
	a, b := randomPair()
	dir, err := os.MkdirTemp("", "vpi-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := &path{name: "attached to one driver", server: side{addr: a}, client: side{addr: b}, more: []string{"--mode", "attached"},
		env: []string{paths.SocketVariable + "=" + filepath.Join(dir, "d.sock"), paths.StateVariable + "=" + filepath.Join(dir, "state")}}
	stop, why, err := r.driver(p, dir)
	if err != nil {
		return err
	}
	defer stop()
	if why != "" {
		fmt.Fprintf(w, "\nattached: skipped, %s\n", why)
		return nil
	}
	s := samples{}
	own := *p
	own.more = append(slices.Clone(p.more), "--memory", "own")
	for range o.Rounds {
		s.add("memcpy", Memcpy(time.Duration(o.Seconds*float64(time.Second))))
		if err := r.bandwidths(p, o, s, false); err != nil {
			return err
		}
		if err := r.latencies(p, o, s, false); err != nil {
			return err
		}
		row, err := r.rdma(&own, ndperf.Test{Verb: ndperf.Write, Measure: ndperf.Bandwidth}, "-s", fmt.Sprint(1<<20), "-D", fmt.Sprint(o.Seconds))
		if err != nil {
			return err
		}
		s.add("own", row.Gbps)
	}
	printBandwidths(w, p, s)
	printLatencies(w, p, s)
	copied, write, registered := s.median("memcpy"), s.median(fmt.Sprint("write", 1<<20)), s.median("own")
	fmt.Fprintf(w, "\nmemcpy, 1 MB blocks of 16 MB sets: %.1f Gb/s. Writes of 1 MB: %.1f Gb/s with memory allocated through the API (%s of memcpy), %.1f with the program's own memory (%s).\n",
		copied, write, ratio(write, copied), registered, ratio(registered, copied))
	return nil
}

// driver starts a driver for the path's two addresses. Why says that programs
// cannot attach here.
func (r *runner) driver(p *path, dir string) (stop func(), why string, err error) {
	x := r.command(p, r.own("up", "--adapter", "Ethernet 1="+p.server.addr, "--adapter", "Ethernet 2="+p.client.addr))
	x.cmd.Env = append(x.cmd.Env, "XDG_CONFIG_HOME="+dir)
	x.cmd.Stdout = nil
	out, err := x.cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := x.cmd.Start(); err != nil {
		return nil, "", err
	}
	stop = func() {
		x.cmd.Process.Signal(os.Interrupt)
		x.cmd.Wait()
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "programs cannot attach: "); ok {
			return stop, text, nil
		}
		if strings.HasPrefix(lines.Text(), "listening") {
			go io.Copy(io.Discard, out)
			return stop, "", nil
		}
	}
	return nil, "", fmt.Errorf("the driver did not come up: %w", cmp.Or(x.wait(), errors.New("it ended")))
}

// machine says what this runs on.
func machine() string {
	s := fmt.Sprintf("%s/%s, %d processors, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		s += ", Linux " + strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				return s + ", " + strings.TrimSpace(strings.TrimLeft(name, "\t :"))
			}
		}
	}
	return s
}
