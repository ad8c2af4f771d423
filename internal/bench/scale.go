package bench

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/bench/worker"
)

// scale measures how many queue pairs and connections are possible, how fast they come and go, and what
// they cost; connections are between two processes and compared with TCP connections.
func (r *runner) scale() error {
	a, b := randomPair()
	embedded := &path{name: "embedded", server: side{addr: a}, client: side{addr: b}}
	attached, stop, err := r.driven(false)
	if err != nil {
		return err
	}
	defer stop()
	attached.name = "attached"
	s := samples{}
	for i := range r.o.Rounds {
		r.progress("scale: round %d of %d, TCP", i+1, r.o.Rounds)
		if err := r.tcpConnections(embedded, s); err != nil {
			return err
		}
		for _, p := range []*path{embedded, attached} {
			r.progress("scale: round %d of %d, connections %s", i+1, r.o.Rounds, p.name)
			if err := r.connections(p, s); err != nil {
				return fmt.Errorf("%s: %d connections: %w", p.name, r.o.Connections, err)
			}
			r.progress("scale: round %d of %d, queue pairs %s", i+1, r.o.Rounds, p.name)
			if err := r.churn(p, s); err != nil {
				return fmt.Errorf("%s: %d queue pairs: %w", p.name, r.o.QPs, err)
			}
		}
	}
	const tcp = "TCP connect and accept"
	r.report.add("scale", s, figure{name: fmt.Sprintf("%s, %s", tcp, grouped(s.median("tcp held"))), unit: "a second", sample: "tcp"})
	for _, p := range []*path{embedded, attached} {
		n := func(name string) string { return p.name + " " + name }
		r.report.add("scale", s,
			figure{fmt.Sprintf("connections at once, %s: %s", p.name, grouped(float64(r.o.Connections))), "a second", n("rate"), tcp, "tcp",
				timesAtLeast(0.5)},
			figure{name: "processor time of a connection, all processes, " + p.name, unit: "us", sample: n("time"), peer: tcp,
				peerSample: "tcp time"},
			figure{name: "memory of an idle connection, both sides, " + p.name, unit: "bytes", sample: n("memory")},
			figure{name: fmt.Sprintf("queue pairs created, %s: %s", p.name, grouped(float64(r.o.QPs))), unit: "a second",
				sample: n("create")},
			figure{name: "queue pairs destroyed, " + p.name, unit: "a second", sample: n("destroy")})
	}
	r.report.add("scale", s, figure{name: "memory that the driver keeps of them afterwards", unit: "MB", sample: "kept"})
	return nil
}

// grouped formats a number with commas.
func grouped(v float64) string {
	s := strconv.Itoa(int(v))
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// tcpConnections measures TCP connections between two processes, fewer if a process may not hold that
// many.
func (r *runner) tcpConnections(p *path, s samples) error {
	server, err := r.worker(p, p.server)
	if err != nil {
		return err
	}
	defer server.end()
	client, err := r.worker(p, p.client)
	if err != nil {
		return err
	}
	defer client.end()
	n := r.o.Connections
	for _, x := range []*peer{server, client} {
		var room int
		if err := x.call("tcp room", nil, &room); err != nil {
			return err
		}
		n = min(n, room)
	}
	var seconds float64
	var at []netip.AddrPort
	if err := server.call("tcp listen", worker.TCPListenArgs{Addr: server.addr, Connections: n}, &at); err != nil {
		return err
	}
	pids := []string{server.pid(), client.pid()}
	before, err := timeOf(pids)
	if err != nil {
		return errSkip{err.Error()}
	}
	if err := client.call("tcp connect", worker.TCPConnectArgs{Remote: at, Connections: n}, &seconds); err != nil {
		server.kill()
		return err
	}
	s.add("tcp", float64(n)/seconds)
	s.add("tcp held", float64(n))
	if err := server.call("tcp accepted", nil, nil); err != nil {
		return err
	}
	after, err := timeOf(pids)
	if err != nil {
		return err
	}
	s.add("tcp time", (after-before)/float64(n))
	if err := client.call("tcp drop", nil, nil); err != nil {
		return err
	}
	return server.call("tcp drop", nil, nil)
}

// connections measures simultaneous connections between two processes, and what they cost while idle.
func (r *runner) connections(p *path, s samples) error {
	server, client, err := r.couple(p, 0)
	if err != nil {
		return err
	}
	defer server.end()
	defer client.end()
	pids := []string{server.pid(), client.pid()}
	if p.driver != 0 {
		pids = append(pids, strconv.Itoa(p.driver))
	}
	before, err := tidyMemory(pids, server, client)
	if err != nil {
		return errSkip{err.Error()}
	}
	began, err := timeOf(pids)
	if err != nil {
		return err
	}
	seconds, err := connect(server, client, worker.EndpointArgs{QPs: r.o.Connections, Depth: 2, Memory: 1 << 20, Receive: true})
	if err != nil {
		return err
	}
	ended, err := timeOf(pids)
	if err != nil {
		return err
	}
	s.add(p.name+" time", (ended-began)/float64(r.o.Connections))
	s.add(p.name+" rate", float64(r.o.Connections)/seconds)
	after, err := tidyMemory(pids, server, client)
	if err != nil {
		return err
	}
	if name := p.name + " memory"; p.driver == 0 || len(s[name]) == 0 { // a driver still has the memory of the previous round
		s.add(name, (after-before)/float64(r.o.Connections))
	}
	if err := client.call("drop", nil, nil); err != nil {
		return err
	}
	return server.call("drop", nil, nil)
}

// timeOf returns the total processor time of processes, in microseconds.
func timeOf(pids []string) (us float64, err error) {
	for _, pid := range pids {
		t, err := processorTime(pid)
		if err != nil {
			return 0, err
		}
		us += t.Seconds() * 1e6
	}
	return us, nil
}

func tidyMemory(pids []string, all ...*peer) (float64, error) {
	for _, x := range all {
		if err := x.call("tidy", nil, nil); err != nil {
			return 0, err
		}
	}
	return memoryOf(pids...)
}

// churn measures creating and destroying many simultaneous queue pairs, and how much memory a driver
// retains when the program is gone.
func (r *runner) churn(p *path, s samples) error {
	var before float64
	var err error
	if p.driver != 0 {
		if before, err = memoryOf(strconv.Itoa(p.driver)); err != nil {
			return err
		}
	}
	x, err := r.opened(p, p.client, 0)
	if err != nil {
		return err
	}
	var c worker.Churned
	err = x.call("churn", worker.ChurnArgs{QPs: r.o.QPs, Depth: 2}, &c)
	x.end()
	if err != nil {
		return err
	}
	s.add(p.name+" create", float64(r.o.QPs)/c.Create)
	s.add(p.name+" destroy", float64(r.o.QPs)/c.Destroy)
	if p.driver == 0 {
		return nil
	}
	time.Sleep(500 * time.Millisecond) // the driver cleans up when it notices that the program is gone
	after, err := memoryOf(strconv.Itoa(p.driver))
	s.add("kept", (after-before)/1e6)
	return err
}
