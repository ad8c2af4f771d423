package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/bench"
	"github.com/softvpi/softvpi/internal/bench/frames"
	"github.com/softvpi/softvpi/internal/bench/worker"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

type benchCmd struct {
	Rounds      int      `default:"3" help:"Number of interleaved runs; the median counts (1 to 101, default 3)."`
	Seconds     float64  `default:"0.3" help:"Length of each run in seconds (0.05 to 60, default 0.3)."`
	Part        []string `help:"What to measure: loopback, veth9000, veth1500 (both root only), attached, net, buffer, waiting, scale, hosts, tunnels, functions, packetdirect (these root), qos, trace, rxe (with --rxe), loss (with --guest); default: all."`
	Row         []string `placeholder:"TEXT" help:"Measure only rows whose names contain this text, and their peers, e.g. \"64 B writes\"; for parts loopback, veth9000, veth1500, attached and net."`
	Rxe         string   `name:"rxe" type:"existingdir" placeholder:"DIR" help:"Also measure Soft-RoCE, with the user-mode kernel in this directory, as make bench-rxe does."`
	Guest       string   `type:"existingdir" placeholder:"DIR" help:"Measure with loss in the virtual machine in this directory, as make bench-loss does."`
	GRPC        string   `name:"grpc" type:"existingfile" placeholder:"FILE" help:"In part net also measure gRPC, with the program of test/grpcbench, as make bench does."`
	JSON        string   `name:"json" placeholder:"FILE" help:"Also write the figures to this file, as JSON (described in docs/performance.md)."`
	QPs         int      `name:"qps" default:"100000" help:"Queue pairs that part scale creates and destroys (1 to 400000, default 100000)."`
	Connections int      `default:"20000" help:"Connections that part scale holds at once (1 to 100000, default 20000)."`
}

func (c benchCmd) Run(s *session) error {
	if err := c.check(); err != nil {
		return err
	}
	o := bench.Options{Rounds: c.Rounds, Seconds: c.Seconds, Parts: c.Part, Rows: c.Row, QPs: c.QPs, Connections: c.Connections,
		SoftRoCE: c.Rxe, LossGuest: c.Guest, GRPC: c.GRPC,
		Command: strings.Join(append([]string{s.env.Name}, s.env.Args...), " ")}
	if s.env.Terminal {
		o.Progress = s.env.Stderr
	}
	r, err := bench.Run(s.ctx, o)
	if errors.Is(err, bench.ErrNoRow) {
		return tool.Usagef("--row: %v", err)
	}
	if r == nil {
		return err
	}
	err = errors.Join(err, r.WriteMarkdown(s.env.Stdout))
	if c.JSON == "" {
		return err
	}
	f, e := os.Create(c.JSON)
	if e != nil {
		return errors.Join(err, e)
	}
	return errors.Join(err, r.WriteJSON(f), f.Close())
}

func (c benchCmd) check() error {
	for _, x := range []struct {
		name      string
		v         int
		low, high int
	}{{"rounds", c.Rounds, 1, 101}, {"qps", c.QPs, 1, 400_000}, {"connections", c.Connections, 1, 100_000}} {
		if x.v < x.low || x.v > x.high {
			return tool.Usagef("--%s is %d; allowed: %d to %d", x.name, x.v, x.low, x.high)
		}
	}
	if !(c.Seconds >= 0.05 && c.Seconds <= 60) {
		return tool.Usagef("--seconds is %g; allowed: 0.05 to 60", c.Seconds)
	}
	for _, p := range c.Part {
		if !slices.Contains(bench.Parts, p) {
			return tool.Usagef("--part is %q; allowed: %s", p, strings.Join(bench.Parts, ", "))
		}
		if p == "rxe" && c.Rxe == "" {
			return tool.Usagef("--part rxe needs --rxe; allowed: the directory that test/rxebench/run.sh fills")
		}
		if p == "loss" && c.Guest == "" {
			return tool.Usagef("--part loss needs --guest; allowed: the directory that test/rxebench/loss.sh fills")
		}
	}
	return nil
}

// benchTCPCmd is the plain TCP sender, which bench starts as separate processes.
type benchTCPCmd struct {
	Server  string  `xor:"side" required:"" help:"Address to serve at."`
	Client  string  `xor:"side" required:"" help:"Address of the server."`
	Size    int     `default:"65536" help:"Bytes of a message."`
	Seconds float64 `default:"1" help:"How long to run."`
	Streams int     `help:"Count the processor time of so many streams instead."`
}

func (c benchTCPCmd) Run(s *session) error {
	if c.Streams < 0 || c.Streams > bench.MostStreams {
		return tool.Usagef("--streams is %d; allowed: 0 to %d", c.Streams, bench.MostStreams)
	}
	if c.Server != "" {
		ready := func() { fmt.Fprintln(s.env.Stdout, "serving at", c.Server) }
		if c.Streams > 0 {
			return bench.ServeStreams(s.ctx, c.Server, c.Streams, ready)
		}
		return bench.ServeTCP(s.ctx, c.Server, ready)
	}
	if c.Size < 1 || c.Size > 16<<20 {
		return tool.Usagef("--size is %d; allowed: 1 to %d", c.Size, 16<<20)
	}
	if !(c.Seconds >= 0.01 && c.Seconds <= 3600) {
		return tool.Usagef("--seconds is %g; allowed: 0.01 to 3600", c.Seconds)
	}
	if c.Streams > 0 {
		r, err := bench.DialStreams(s.ctx, c.Client, c.Streams, time.Duration(c.Seconds*float64(time.Second)))
		if err != nil {
			return err
		}
		return writeJSON(s.env.Stdout, r)
	}
	r, err := bench.DialTCP(s.ctx, c.Client, c.Size, time.Duration(c.Seconds*float64(time.Second)))
	if err != nil {
		return err
	}
	return writeJSON(s.env.Stdout, r)
}

// benchForwardCmd is what bench compares Ethernet functions with.
type benchForwardCmd struct {
	Virtio  bool `help:"Have virtio headers before the frames, and offloads."`
	Tunnels bool `help:"Also have offloads for tunnels, with --virtio."`
}

func (c benchForwardCmd) Run(s *session) error {
	return bench.Forward(s.ctx, [2]string{"vpi0", "vpi1"}, c.Virtio, c.Tunnels, func() { fmt.Fprintln(s.env.Stdout, "ready") })
}

// benchFramesCmd is one end of bench's frames.
type benchFramesCmd struct {
	Receive   bool    `help:"Receive; otherwise send."`
	Adapter   string  `help:"Adapter of the driver."`
	Interface string  `help:"Use the rings of a packet socket on this interface instead."`
	To        string  `help:"MAC to send to."`
	Size      int     `default:"64" help:"Bytes of a frame, 60 to 1514."`
	Burst     int     `default:"32" help:"Frames of a burst, 1 to 512."`
	Flows     int     `help:"Make them frames of so many flows of TCP, 1 to 4096; 0: frames of no protocol."`
	Queues    int     `help:"Receive by so many queues, over which flows are spread, 1 to 64; 0: by one."`
	Segment   int     `help:"Send large packets, of which each frame has so many bytes of data, 500 to 1460; 0: each frame by itself."`
	Checksums bool    `help:"Have the adapter fill in checksums."`
	Seconds   float64 `default:"1" help:"How long to run."`
}

func (c benchFramesCmd) Run(s *session) error {
	if c.Size < 60 || c.Size > 1514 {
		return tool.Usagef("--size is %d; allowed: 60 to 1514", c.Size)
	}
	if c.Burst < 1 || c.Burst > 512 {
		return tool.Usagef("--burst is %d; allowed: 1 to 512", c.Burst)
	}
	if !(c.Seconds >= 0.01 && c.Seconds <= 3600) {
		return tool.Usagef("--seconds is %g; allowed: 0.01 to 3600", c.Seconds)
	}
	if c.Flows < 0 || c.Flows > 4096 || c.Queues < 0 || c.Queues > 64 {
		return tool.Usagef("--flows is %d, --queues %d; allowed: 0 to 4096, 0 to 64", c.Flows, c.Queues)
	}
	if c.Segment != 0 && (c.Segment < 500 || c.Segment > 1460 || c.Flows == 0) {
		return tool.Usagef("--segment is %d; allowed: 0, or 500 to 1460 with --flows", c.Segment)
	}
	f := frames.Config{Adapter: c.Adapter, Interface: c.Interface, Size: c.Size, Burst: c.Burst,
		Flows: c.Flows, Queues: c.Queues, Segment: c.Segment, Checksums: c.Checksums,
		For: time.Duration(c.Seconds * float64(time.Second))}
	if c.Receive {
		r, err := frames.Receive(s.ctx, f)
		if err != nil {
			return err
		}
		return writeJSON(s.env.Stdout, r)
	}
	to, err := net.ParseMAC(c.To)
	if err != nil || len(to) != len(f.To) {
		return tool.Usagef("--to is %q; allowed: a MAC", c.To)
	}
	copy(f.To[:], to)
	r, err := frames.Send(s.ctx, f, func() { fmt.Fprintln(s.env.Stdout, "sending") })
	if err != nil {
		return err
	}
	return writeJSON(s.env.Stdout, r)
}

// benchWorkerCmd is the program that bench starts and controls.
type benchWorkerCmd struct{}

func (benchWorkerCmd) Run(s *session) error {
	return worker.Serve(s.ctx, s.env.Stdin, s.env.Stdout)
}

// benchPairCmd measures two adapters of one process that are connected by the wire, driven by one thread.
type benchPairCmd struct {
	A       netip.Addr `required:"" help:"Address of the requester's adapter."`
	B       netip.Addr `required:"" help:"Address of the responder's."`
	Op      string     `required:"" help:"write, send or read; with -lat appended, latency."`
	MTU     int        `name:"mtu" default:"4096" help:"Largest payload of a packet."`
	Size    int        `default:"1048576" help:"Bytes of a message."`
	Seconds float64    `default:"1" help:"How long to run."`
	Depth   int        `default:"4" help:"Requests in flight on each queue pair."`
	QPs     int        `name:"qps" default:"1" help:"Queue pairs."`
	Port    uint16     `help:"UDP port to use instead of 4791, which a kernel's Soft-RoCE occupies."`
	Loss    float64    `help:"Percentage of packets that the system drops at random on arrival (Linux 6.6, root)."`
	// Separate processes, which poll and write.
	Processes bool `help:"Run each adapter in its own process; for write only."`
}

func (c benchPairCmd) Run(s *session) error {
	if !slices.Contains(worker.PairOps, c.Op) {
		return tool.Usagef("--op is %q; allowed: %s", c.Op, strings.Join(worker.PairOps, ", "))
	}
	if c.Processes && c.Op != "write" {
		return tool.Usagef("--processes with --op %s; allowed: write", c.Op)
	}
	if c.Loss < 0 || c.Loss > 100 || c.Loss > 0 && c.Processes {
		return tool.Usagef("--loss is %v; allowed: 0 to 100, and 0 with --processes", c.Loss)
	}
	if c.Size < 1 || c.Size > 4<<20 {
		return tool.Usagef("--size is %d; allowed: 1 to %d", c.Size, 4<<20)
	}
	if c.Depth < 1 || c.Depth > 128 || c.QPs < 1 || c.QPs > 256 {
		return tool.Usagef("--depth is %d and --qps %d; allowed: 1 to 128 and 1 to 256", c.Depth, c.QPs)
	}
	args := worker.PairArgs{A: c.A, B: c.B, Op: c.Op, MTU: c.MTU, Bytes: c.Size, Seconds: c.Seconds, Depth: c.Depth, QPs: c.QPs,
		UDPPort: c.Port, Loss: c.Loss / 100}
	measure := worker.Pair
	if c.Processes {
		measure = bench.Pair
	}
	r, err := measure(s.ctx, args)
	if err != nil {
		return err
	}
	return writeJSON(s.env.Stdout, r)
}
