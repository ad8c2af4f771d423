package bench

import (
	"fmt"
	"math"
	"slices"

	"github.com/softvpi/softvpi/internal/bench/worker"
)

// smallBuffer is the usual limit of a socket's receive buffer (net.core.rmem_max).
const smallBuffer = 212992

// many lists the numbers of queue pairs that write to one receiver at once.
var many = []int{1, 100, 1000}

// buffer measures many queue pairs that write to one receiver whose socket has a small receive buffer.
func (r *runner) buffer() error {
	const part = "many queue pairs, SO_RCVBUF 212,992"
	p := &path{}
	a, b := randomPair()
	p.server.addr, p.client.addr = a, b
	server, client, err := r.couple(p.polling(), smallBuffer)
	if err != nil {
		return err
	}
	defer server.end()
	defer client.end()
	if _, err := connect(server, client, worker.EndpointArgs{QPs: slices.Max(many), Depth: 4, Memory: setSize}); err != nil {
		return err
	}
	s := samples{}
	before, err := counters(client)
	if err != nil {
		return err
	}
	for i := range r.o.Rounds {
		for _, n := range many {
			r.progress("%s: round %d of %d, %d", part, i+1, r.o.Rounds, n)
			var w worker.Written
			a := worker.WriteArgs{QPs: n, Size: 256 << 10, Depth: max(1, 4/n), Seconds: math.Max(r.o.Seconds, 1.5)}
			if err := client.call("write", a, &w); err != nil {
				return err
			}
			s.add(fmt.Sprint("goodput", n), w.Gbps)
			after, err := counters(client)
			if err != nil {
				return err
			}
			sent := after["RDMA Outbound Frames/sec"] - before["RDMA Outbound Frames/sec"]
			again := after["Retransmitted packets"] - before["Retransmitted packets"]
			if sent > 0 {
				s.add(fmt.Sprint("again", n), 100*float64(again)/float64(sent))
			}
			s.add(fmt.Sprint("packets again", n), float64(again))
			s.add(fmt.Sprint("time-outs", n), float64(after["Requester time out received"]-before["Requester time out received"]))
			before = after
		}
	}
	c, err := counters(server)
	if err != nil {
		return err
	}
	s.add("effective", float64(c["Link receive buffer"]))
	s.add("drops", float64(c["Link receive buffer drops"]))
	for _, n := range many {
		f := figure{fmt.Sprintf("writes of 256 KB on %d", n), "Gb/s", fmt.Sprint("goodput", n), "on 1", "goodput1", timesAtLeast(0.7)}
		if n == 1 {
			f.peer, f.target = "", nil
		}
		r.report.add(part, s, f,
			figure{name: fmt.Sprintf("packets sent again a run, %d", n), unit: "packets", sample: fmt.Sprint("packets again", n)},
			figure{name: fmt.Sprintf("of all packets, %d", n), unit: "%", sample: fmt.Sprint("again", n)},
			figure{name: fmt.Sprintf("time-outs a run, %d", n), sample: fmt.Sprint("time-outs", n)})
	}
	r.report.add(part, s, figure{name: "effective receive buffer", unit: "bytes", sample: "effective"},
		figure{name: "datagrams dropped for want of it, all runs", sample: "drops"})
	return nil
}

func counters(x *peer) (map[string]uint64, error) {
	var c map[string]uint64
	err := x.call("counters", nil, &c)
	return c, err
}
