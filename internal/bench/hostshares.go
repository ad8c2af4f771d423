package bench

import (
	"errors"
	"fmt"
	"os"

	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// shareFigures are those of RDMA and TCP at one port. Neither starves if both keep something; on few processors the programs share
// these too.
var shareFigures = []figure{
	{"RDMA writes of 64 KB beside a TCP stream at their ports", "Gb/s", "writes beside", "alone", "writes alone", timesAtLeast(0.2)},
	{"a TCP stream beside RDMA writes of 64 KB at its ports", "Gb/s", "stream beside", "alone", "stream alone", timesAtLeast(0.2)},
}

// shortestShare is how long both run at least, in seconds, so that they run at the same time for most of it.
const shortestShare = 1

// shares measures RDMA writes and a TCP stream of hosts between two drivers joined by a veth, each alone and both at once.
func (r *runner) shares(s samples) error {
	if !r.needs("writes beside", "stream beside") {
		return nil
	}
	p, join, done, err := wiresPath(9000)
	if err != nil {
		return errSkip{err.Error()}
	}
	defer done()
	dir, err := os.MkdirTemp("", "vpi-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p.more = []string{"--mode", "attached"}
	for i, x := range []*side{&p.server, &p.client} {
		x.addr = fmt.Sprintf("198.51.100.%d", i+1)
		d, err := r.frameDriver(p, dir, x, fmt.Sprintf("%c=%s/24,interface=vpi%d,mac=02:00:00:00:00:0%[1]c,host=tap:host%[3]d", 'a'+i, x.addr, i))
		if err != nil {
			return err
		}
		defer d.stop()
	}
	addrs, err := join()
	if err != nil {
		return err
	}
	seconds := fmt.Sprint(max(r.o.Seconds, shortestShare))
	writes := func() (float64, error) {
		row, err := r.rdma(p, ndperf.Test{Verb: ndperf.Write, Measure: ndperf.Bandwidth}, "-s", "65536", "-D", seconds)
		return row.Gbps, err
	}
	stream := func() (float64, error) {
		x, err := r.tcpStreams(p, addrs[0], 1, seconds)
		return float64(x.Bytes) * 8 / (1 << 30) / x.Seconds, err
	}
	for i := range r.o.Rounds {
		r.progress("hosts, RDMA and TCP at one port: round %d of %d", i+1, r.o.Rounds)
		writesAlone, err1 := writes()
		streamAlone, err2 := stream()
		both := make(chan error, 1)
		var writesBeside float64
		go func() {
			var err error
			writesBeside, err = writes()
			both <- err
		}()
		streamBeside, err3 := stream()
		if err := errors.Join(err1, err2, err3, <-both); err != nil {
			return err
		}
		s.add("writes alone", writesAlone)
		s.add("stream alone", streamAlone)
		s.add("writes beside", writesBeside)
		s.add("stream beside", streamBeside)
	}
	return nil
}
