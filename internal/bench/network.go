package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"

	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// The message sizes of the bandwidth runs, in bytes.
var sizes = []int{64, 1024, 4096, 65536, 1 << 20}

const (
	small = 64
	large = 1 << 20
)

// goals are the figures that a path should reach; 0: no goal.
type goals struct {
	large float64 // writes of 1 MB with as much memory as iperf3 uses, relative to iperf3; sends and reads 0.8 of that
	one   float64 // million 64-byte writes per second on one queue pair
	four  float64 // on four
	few   float64 // writes and reads of 4 KB, relative to sends
}

// loopback measures between two processes with embedded adapters.
func (r *runner) loopback() error {
	a, b := randomPair()
	p := &path{name: "loopback, embedded", server: side{addr: a}, client: side{addr: b}, more: []string{"--mode", "embedded"}}
	return r.network(p, goals{large: 1.3})
}

// veth returns a function that measures the same across a pair of virtual Ethernet devices with this MTU.
func (r *runner) veth(mtu int, aims goals) func() error {
	return func() error {
		p, closePath, err := vethPath(mtu)
		if err != nil {
			return errSkip{err.Error()}
		}
		return errors.Join(r.network(p, aims), closePath())
	}
}

func randomPair() (a, b string) {
	x := [4]byte{127, byte(16 + rand.N(200)), byte(rand.N(256)), 1}
	y := x
	y[3] = 2
	return netip.AddrFrom4(x).String(), netip.AddrFrom4(y).String()
}

// network measures everything on a path, compared with TCP.
func (r *runner) network(p *path, aims goals) error {
	s := samples{}
	figures := r.choose(append(bandwidthFigures(aims), latencyFigures(1.2, 0.8)...))
	if len(figures) == 0 {
		return nil
	}
	for i := range r.o.Rounds {
		r.progress("%s: round %d of %d, bandwidth", p.name, i+1, r.o.Rounds)
		if err := r.besideTCP(p, s, smaller); err != nil {
			return err
		}
		if err := r.four(p, s); err != nil {
			return err
		}
		for range largeTurns {
			if err := r.largeBesideTCP(p, s); err != nil {
				return err
			}
		}
		r.progress("%s: round %d of %d, latency", p.name, i+1, r.o.Rounds)
		if err := r.latencies(p, s); err != nil {
			return err
		}
	}
	r.report.add(p.name, s, figures...)
	return nil
}

// largeTurns is how often per round the large messages and iperf3 alternate: both vary from second to
// second more than anything else, and a ratio of two figures measured far apart is of little use.
const largeTurns = 3

// smaller are the sizes below large.
var smaller = sizes[:len(sizes)-1]

// besideTCP measures every operation with these sizes, and plain TCP.
func (r *runner) besideTCP(p *path, s samples, sizes []int) error {
	if err := r.bandwidths(p, s, sizes); err != nil {
		return err
	}
	for _, size := range sizes {
		if !r.needs(fmt.Sprint("tcp", size)) {
			continue
		}
		x, err := r.tcp(p, size, r.seconds())
		if err != nil {
			return err
		}
		s.add(fmt.Sprint("tcp", size), x.Gbps)
	}
	return nil
}

// largeBesideTCP measures large messages alternating with TCP: with the memory that all sizes cycle
// through, like plain TCP, and with one block per side, like iperf3.
func (r *runner) largeBesideTCP(p *path, s samples) error {
	if err := r.besideTCP(p, s, []int{large}); err != nil {
		return err
	}
	for _, verb := range verbs {
		if err := r.bandwidth(p, s, oneBlock(verb), verb, "-s", fmt.Sprint(large), "--cycle", fmt.Sprint(large)); err != nil {
			return err
		}
	}
	if !installed("iperf3") || !r.needs("iperf3") {
		return nil
	}
	v, err := r.iperf3(p, "1M")
	if err != nil {
		return err
	}
	s.add("iperf3", v)
	return nil
}

// verbs lists the operations in the order in which they are measured.
var verbs = []ndperf.Verb{ndperf.Write, ndperf.Send, ndperf.Read}

// oneBlock returns the name of the sample of large messages that use one block of memory.
func oneBlock(verb ndperf.Verb) string { return string(verb) + " one block" }

// bandwidths measures every operation with one queue pair.
func (r *runner) bandwidths(p *path, s samples, sizes []int) error {
	for _, size := range sizes {
		for _, verb := range verbs {
			if err := r.bandwidth(p, s, fmt.Sprint(verb, size), verb, "-s", fmt.Sprint(size)); err != nil {
				return err
			}
		}
	}
	return nil
}

// four measures small writes with four queue pairs.
func (r *runner) four(p *path, s samples) error {
	return r.bandwidth(p, s, "four", ndperf.Write, "-s", fmt.Sprint(small), "-q", "4")
}

func (r *runner) bandwidth(p *path, s samples, sample string, verb ndperf.Verb, options ...string) error {
	if !r.needs(sample, sample+" rate") {
		return nil
	}
	row, err := r.rdma(p, ndperf.Test{Verb: verb, Measure: ndperf.Bandwidth}, append(options, "-D", r.seconds())...)
	s.add(sample, row.Gbps)
	s.add(sample+" rate", row.MessageRate)
	return err
}

// bandwidthFigures returns the rows of bandwidths, each compared with TCP of the same size, then those of
// large messages compared with iperf3.
func bandwidthFigures(aims goals) []figure {
	var all []figure
	for _, size := range sizes {
		for _, verb := range verbs {
			all = append(all, figure{name: fmt.Sprintf("%s of %s", verb, inBytes(size)), unit: "Gb/s", sample: fmt.Sprint(verb, size),
				peer: "plain TCP", peerSample: fmt.Sprint("tcp", size)})
		}
	}
	all = append(all, iperf3Figures(aims)...)
	million := func(v float64) *Target {
		if v == 0 {
			return nil
		}
		return atLeast(v)
	}
	var few *Target
	if aims.few > 0 {
		few = timesAtLeast(aims.few)
	}
	return append(all,
		figure{"write of 4 KB beside sends", "Gb/s", "write4096", "send of 4 KB", "send4096", few},
		figure{"read of 4 KB beside sends", "Gb/s", "read4096", "send of 4 KB", "send4096", few},
		figure{"write of 64 KB beside 1 MB", "Gb/s", "write65536", "write of 1 MB", fmt.Sprint("write", large), timesAtLeast(0.8)},
		figure{"64 B writes, one queue pair", "M/s", "write64 rate", "", "", million(aims.one)},
		figure{"64 B writes, four queue pairs", "M/s", "four rate", "", "", million(aims.four)})
}

// iperf3Figures returns the rows of messages of 1 MB compared with iperf3. Only the equal comparison has a
// goal: iperf3 sends one block of 1 MB over and over and receives it in one place, both in a near cache.
// What goes through 16 MB of memory is listed too.
func iperf3Figures(aims goals) []figure {
	const peer, sample = "iperf3 TCP", "iperf3"
	var all []figure
	for _, verb := range verbs {
		aim := aims.large
		if verb != ndperf.Write {
			aim *= 0.8
		}
		all = append(all, figure{fmt.Sprintf("%s of 1 MB, 1 MB of memory as iperf3", verb), "Gb/s", oneBlock(verb), peer, sample,
			timesAtLeast(aim)})
	}
	for _, verb := range verbs {
		all = append(all, figure{fmt.Sprintf("%s of 1 MB, 16 MB of memory", verb), "Gb/s", fmt.Sprint(verb, large), peer, sample, nil})
	}
	return append(all, figure{"plain TCP of 1 MB, 16 MB of memory", "Gb/s", fmt.Sprint("tcp", large), peer, sample, nil})
}

// latencyBytes is the size of the messages whose latency is measured. Sockperf sends at least 14.
const latencyBytes = 8

// latencies measures one-way latencies (for reads the whole) of small messages, polling and blocking,
// compared with TCP. A polling process gets a processor of its own, ours and TCP's alike: two that the
// system puts on one processor wait for each other's time slices, microseconds or milliseconds.
func (r *runner) latencies(p *path, s samples) error {
	apart := p.apart()
	for _, verb := range verbs {
		if !r.needs(string(verb), string(verb)+" 99") {
			continue
		}
		row, err := r.rdma(apart, ndperf.Test{Verb: verb, Measure: ndperf.Latency}, "-s", fmt.Sprint(latencyBytes), "-D", r.seconds())
		if err != nil {
			return err
		}
		s.latency(string(verb), row.Latency.Typical, row.Latency.P99)
	}
	if err := r.pingPongs(p, s, false); err != nil {
		return err
	}
	return r.pingPongs(apart, s, true)
}

// pingPongs measures messages and TCP, both waiting in the same way. For blocking waits a thread that runs
// only when nothing else does keeps the processors awake: the time to wake an idle processor is a property
// of the machine, not of the network.
func (r *runner) pingPongs(p *path, s samples, polling bool) error {
	how := "blocking"
	if polling {
		how = "polling"
	}
	needs := func(name string) bool { return r.needs(name, name+" 99") }
	if !needs("sockperf idle") && !needs("send "+how) && !needs("tcp "+how) && !needs("sockperf "+how) {
		return nil
	}
	if !polling {
		if installed("sockperf") && needs("sockperf idle") {
			typical, p99, err := r.sockperf(p)
			if err != nil {
				return err
			}
			s.latency("sockperf idle", typical, p99)
		}
		stop, err := r.keepAwake()
		if err != nil {
			return err
		}
		defer stop()
	}
	args := pingArgs{Bytes: latencyBytes, Seconds: r.o.Seconds, Polling: polling}
	if needs("send " + how) {
		x, err := r.messages(p, args)
		if err != nil {
			return err
		}
		s.latency("send "+how, x.Typical, x.P99)
	}
	if needs("tcp " + how) {
		x, err := r.tcpPing(p, args)
		if err != nil {
			return err
		}
		s.latency("tcp "+how, x.Typical, x.P99)
	}
	if !installed("sockperf") || !needs("sockperf "+how) {
		return nil
	}
	measure := func(p *path) (float64, float64, error) { return r.sockperf(p) }
	if polling {
		measure = r.leastSockperf
	}
	typical, p99, err := measure(p)
	if err != nil {
		return err
	}
	s.latency("sockperf "+how, typical, p99)
	return nil
}

// leastSockperf measures polling sockperf with each end on a processor of its own, and where the system
// puts them, which is often a little faster, but sometimes a thousand times slower: the better result
// counts.
func (r *runner) leastSockperf(p *path) (typical, p99 float64, err error) {
	if typical, p99, err = r.sockperf(p, "--nonblocked"); err != nil {
		return 0, 0, err
	}
	loose := *p
	loose.server.processor, loose.client.processor = "", ""
	other, other99, err := r.sockperf(&loose, "--nonblocked")
	if err != nil {
		return 0, 0, err
	}
	if other < typical {
		return other, other99, nil
	}
	return typical, p99, nil
}

func (s samples) latency(name string, typical, p99 float64) {
	s.add(name, typical)
	s.add(name+" 99", p99)
}

// latencyFigures returns the rows of latencies. Both goals are relative to polling sockperf, because what
// blocking takes depends on where the system puts the two processes, tenfold on some virtual machines,
// with the processors awake or not. blocking may be 0: no goal. Of the 99 % latencies those of polling have a goal, twice
// sockperf's: beside other work they are how long strangers keep the processor.
func latencyFigures(blocking, polling float64) []figure {
	const peer, sample = "sockperf TCP, polling", "sockperf polling"
	slept := timesAtMost(blocking)
	if blocking == 0 {
		slept = nil
	}
	rows := []figure{
		{"send, polling", "us", "send", peer, sample, timesAtMost(polling)},
		{"write, polling", "us", "write", peer, sample, timesAtMost(polling)},
		{"read (whole), polling", "us", "read", peer, sample, nil},
		{"send, blocking", "us", "send blocking", peer, sample, slept},
		{"send, blocking, beside TCP that blocks too", "us", "send blocking", "sockperf TCP, blocking", "sockperf blocking", nil},
		{"plain TCP, polling", "us", "tcp polling", peer, sample, nil},
		{"plain TCP, blocking", "us", "tcp blocking", peer, sample, nil},
		{"sockperf TCP, blocking", "us", "sockperf blocking", peer, sample, nil},
		{"sockperf TCP, blocking, processors idle", "us", "sockperf idle", peer, sample, nil},
	}
	for i := range rows {
		f := rows[i]
		f.name, f.sample, f.peerSample, f.target = f.name+", 99 %", f.sample+" 99", f.peerSample+" 99", nil
		if rows[i].sample == "send" || rows[i].sample == "write" {
			f.target = timesAtMost(2)
		}
		rows[i].name += ", median"
		rows = append(rows, f)
	}
	return rows
}

// inBytes formats a size for people.
func inBytes(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

func installed(tool string) bool {
	_, err := exec.LookPath(tool)
	return err == nil
}
