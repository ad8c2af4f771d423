package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/softvpi/softvpi/internal/bench/worker"
	"github.com/softvpi/softvpi/internal/os/paths"
)

const (
	// callBytes is the size of a request, and of its answer.
	callBytes = 100
	// warmUp is the time, in seconds, at the start of a run that does not count.
	warmUp = 0.1
)

// callers lists the numbers of connections that call at once, with the share of TCP's rate that rdmanet should reach.
var callers = []struct {
	connections int
	share       float64
}{{1, 1}, {2, 0.5}, {16, 0.5}, {100, 0.5}}

// net measures programs that use package net: how many calls a second they make over rdmanet, compared with TCP on
// the same path. Each connection calls again as soon as it is answered.
func (r *runner) net() error {
	services := []string{"echo", "http"}
	if r.o.GRPC == "" {
		r.report.skip("net: gRPC", "it needs --grpc, which make bench gives")
	} else {
		services = append(services, "grpc")
	}
	for _, open := range []func() (*path, func() error, error){r.netAttached, netEmbedded, r.netAcross} {
		p, closePath, err := open()
		var skip errSkip
		if errors.As(err, &skip) {
			r.report.skip("net", skip.why)
			continue
		}
		if err != nil {
			return err
		}
		err = r.calls(p, services)
		if err = errors.Join(err, closePath()); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (r *runner) netAttached() (*path, func() error, error) {
	p, stop, err := r.driven(false)
	return p, func() error { stop(); return nil }, err
}

func netEmbedded() (*path, func() error, error) {
	a, b := randomPair()
	return &path{name: "embedded, loopback", server: side{addr: a}, client: side{addr: b}}, func() error { return nil }, nil
}

// netAcross is a pair of virtual Ethernet devices with a driver at each end.
func (r *runner) netAcross() (*path, func() error, error) {
	p, closeVeth, err := vethPath(1500)
	if err != nil {
		return nil, nil, errSkip{err.Error()}
	}
	p.name = "attached across veth"
	dir, err := os.MkdirTemp("", "vpi-bench-")
	if err != nil {
		return nil, nil, errors.Join(err, closeVeth())
	}
	var drivers []*process
	closePath := func() error {
		for _, x := range drivers {
			_ = x.cmd.Process.Signal(os.Interrupt)
			_ = x.cmd.Wait()
		}
		return errors.Join(closeVeth(), os.RemoveAll(dir))
	}
	for i, s := range []*side{&p.server, &p.client} {
		s.socket = filepath.Join(dir, fmt.Sprint(i, ".sock"))
		here := *p
		here.env = []string{paths.SocketVariable + "=" + s.socket, paths.StateVariable + "=" + filepath.Join(dir, fmt.Sprint("state", i)),
			"XDG_CONFIG_HOME=" + dir}
		x, err := r.driver(&here, *s, s.addr)
		if err != nil {
			return nil, nil, errors.Join(err, closePath())
		}
		drivers = append(drivers, x)
	}
	return p, closePath, nil
}

// calls measures all services on a path, TCP and rdmanet in turn.
func (r *runner) calls(p *path, services []string) error {
	s := samples{}
	var figures []figure
	for _, service := range services {
		for _, n := range callers {
			name := fmt.Sprintf("%s, %d B, connections: %d", service, callBytes, n.connections)
			sample := func(network string) string { return fmt.Sprint(service, n.connections, " ", network) }
			figures = append(figures, figure{name, "calls/s", sample("rdma"), service + " over TCP", sample("tcp"), timesAtLeast(n.share)})
		}
	}
	if figures = r.choose(figures); len(figures) == 0 {
		return nil
	}
	for i := range r.o.Rounds {
		for _, service := range services {
			for _, n := range callers {
				for _, network := range []string{"tcp", "rdma"} {
					sample := fmt.Sprint(service, n.connections, " ", network)
					if !r.needs(sample) {
						continue
					}
					r.progress("net, %s: round %d of %d, %s, %d connections", p.name, i+1, r.o.Rounds, service, n.connections)
					x, err := r.call(p, service, network, n.connections)
					if err != nil {
						return fmt.Errorf("%s over %s, %d connections: %w", service, network, n.connections, err)
					}
					s.add(sample, x.Rate)
				}
			}
		}
	}
	r.report.add("net, "+p.name, s, figures...)
	return nil
}

// call measures one service between two new processes.
func (r *runner) call(p *path, service, network string, connections int) (x worker.Loaded, err error) {
	q := *p
	if service == "grpc" {
		q.worker = []string{r.o.GRPC}
	}
	server, client, err := r.couple(&q, 0)
	if err != nil {
		return x, err
	}
	defer server.end()
	defer client.end()
	args := worker.LoadArgs{
		Service: service, Network: network, Local: client.addr, Connections: connections, Bytes: callBytes,
		Seconds: r.o.Seconds, SecondsBeforeCounts: warmUp,
	}
	if err := server.call("serve", worker.ServeArgs{Service: service, Network: network, Addr: server.addr}, &args.Remote); err != nil {
		return x, err
	}
	err = client.call("load", args, &x)
	return x, err
}
