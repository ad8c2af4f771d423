package bench

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/bench/worker"
)

// idleConnections is the number of connections of an idle driver.
const idleConnections = 1000

// pollers lists the numbers of processes that poll at once.
var pollers = []int{1, 2, 4, 8}

// waiting measures the cost of waiting: the processor time of a driver whose connections are idle, and
// what is left of bandwidth and latency when more processes poll than there are processors.
func (r *runner) waiting() error {
	const part = "waiting"
	p, stop, err := r.driven(false)
	if err != nil {
		return err
	}
	defer stop()
	s := samples{}
	r.progress("%s: idle", part)
	if err := r.idle(p, s); err != nil {
		return err
	}
	for i := range r.o.Rounds {
		for _, n := range pollers {
			r.progress("%s: round %d of %d, %d busy processes", part, i+1, r.o.Rounds, n)
			if err := r.contend(p, s, n); err != nil {
				return fmt.Errorf("%d busy processes: %w", n, err)
			}
		}
	}
	name := fmt.Sprintf("of a driver with %d connected idle queue pairs", idleConnections)
	r.report.add(part, s, figure{name: "processor time " + name, unit: "% of a processor", sample: "driver", target: atMost(1)},
		figure{name: "processor time of its two programs together", unit: "% of a processor", sample: "programs", target: atMost(1)})
	for _, n := range pollers {
		f := figure{name: fmt.Sprintf("writes of 64 KB, busy processes: %d, together", n), unit: "Gb/s", sample: fmt.Sprint("write", n),
			peer: "1 busy process", peerSample: "write1"}
		if n == 1 {
			f.peer = ""
		}
		r.report.add(part, s, f)
	}
	for _, n := range pollers {
		name := fmt.Sprintf("send of %d B, busy processes: %d", latencyBytes, n)
		if n == 1 {
			name += " (the other side blocks)"
		}
		r.report.add(part, s, figure{name: name + ", median", unit: "us", sample: fmt.Sprint("lat", n)},
			figure{name: name + ", 99 %", unit: "us", sample: fmt.Sprint("lat", n, " 99")})
	}
	return nil
}

// idle measures the processor time of a driver and of its programs that have connections and do nothing.
func (r *runner) idle(p *path, s samples) error {
	server, client, err := r.couple(p, 0)
	if err != nil {
		return err
	}
	defer server.end()
	defer client.end()
	if _, err := connect(server, client, worker.EndpointArgs{QPs: idleConnections, Depth: 16, Memory: 1 << 20, Receive: true}); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond) // let the aftermath of connecting settle
	for range r.o.Rounds {
		driver, programs, err := r.idleRun(p, server, client)
		if err != nil {
			return errSkip{err.Error()}
		}
		s.add("driver", driver)
		s.add("programs", programs)
	}
	return nil
}

func (r *runner) idleRun(p *path, server, client *peer) (driver, programs float64, err error) {
	pids := []string{strconv.Itoa(p.driver), server.pid(), client.pid()}
	var before, spent [3]time.Duration
	start := time.Now()
	for i, pid := range pids {
		if before[i], err = processorTime(pid); err != nil {
			return 0, 0, err
		}
	}
	time.Sleep(max(r.duration(), time.Second))
	for i, pid := range pids {
		after, err := processorTime(pid)
		if err != nil {
			return 0, 0, err
		}
		spent[i] = after - before[i]
	}
	percent := 100 / time.Since(start).Seconds()
	return spent[0].Seconds() * percent, (spent[1] + spent[2]).Seconds() * percent, nil
}

// contend makes n processes poll at once: first writers, each to a process that sleeps, then ping-pong
// players.
func (r *runner) contend(p *path, s samples, n int) error {
	pairs, end, err := r.pairs(p, n)
	if err != nil {
		return err
	}
	var total float64
	w := make([]worker.Written, n)
	writing := make([]<-chan error, n)
	for _, x := range pairs {
		if _, err := connect(x[0], x[1], worker.EndpointArgs{QPs: 1, Depth: 16, Memory: 4 << 20}); err != nil {
			end()
			return err
		}
	}
	for i, x := range pairs {
		writing[i] = x[1].begin("write", worker.WriteArgs{QPs: 1, Size: 65536, Depth: 16, Seconds: r.o.Seconds}, &w[i])
	}
	for i := range pairs {
		if e := <-writing[i]; e != nil {
			err = e
		}
		total += w[i].Gbps
	}
	end()
	if err != nil {
		return err
	}
	s.add(fmt.Sprint("write", n), total)
	return r.players(p, s, n)
}

// players measures the latency between n processes that all poll, in pairs; a single one plays with one
// that blocks.
func (r *runner) players(p *path, s samples, n int) error {
	pairs, end, err := r.pairs(p, (n+1)/2)
	if err != nil {
		return err
	}
	defer end()
	x := make([]latency, len(pairs))
	playing := make(chan error, len(pairs))
	ours := pingArgs{Bytes: latencyBytes, Seconds: r.o.Seconds, Polling: true}
	theirs := ours
	theirs.Polling = n > 1
	for i, pair := range pairs {
		go func() {
			var err error
			x[i], err = play(pair[0], pair[1], theirs, ours)
			playing <- err
		}()
	}
	for range pairs {
		if e := <-playing; e != nil {
			err = e
		}
	}
	var typical, p99 float64
	for _, l := range x {
		typical += l.Typical / float64(len(x))
		p99 = math.Max(p99, l.P99)
	}
	s.latency(fmt.Sprint("lat", n), typical, p99)
	return err
}

// pairs starts n pairs of attached workers.
func (r *runner) pairs(p *path, n int) (all [][2]*peer, end func(), err error) {
	end = func() {
		for _, x := range all {
			x[1].end()
			x[0].end()
		}
	}
	for range n {
		server, client, err := r.couple(p, 0)
		if err != nil {
			end()
			return nil, nil, err
		}
		all = append(all, [2]*peer{server, client})
	}
	return all, end, nil
}
