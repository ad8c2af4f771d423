package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"time"

	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// streamBlock is how many bytes the ends of streams write and read at once, as iperf3 does.
const streamBlock = 128 << 10

// MostStreams is how many streams there may be.
const MostStreams = 64

// StreamsResult is what streams of TCP have carried, and what it took.
type StreamsResult struct {
	Bytes   uint64  `json:"bytes"`
	Seconds float64 `json:"seconds"`
	// Busy is the processor time of both ends in that time, in seconds.
	Busy float64 `json:"busy"`
}

// received is what the receiving end tells the other.
type received struct {
	Bytes uint64  `json:"bytes"`
	Busy  float64 `json:"busy"`
}

// ServeStreams receives streams of one DialStreams, n of them.
func ServeStreams(ctx context.Context, addr string, n int, ready func()) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	ready()
	type end struct {
		bytes uint64
		err   error
	}
	ends := make(chan end, n)
	var first net.Conn
	for range n {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		defer c.Close()
		if first == nil {
			first = c
		}
		go func() {
			b, err := drain(c)
			ends <- end{b, err}
		}()
	}
	busy, sum := ndperf.ProcessorTime(), received{}
	for range n {
		e := <-ends
		if e.err != nil {
			return e.err
		}
		sum.Bytes += e.bytes
	}
	sum.Busy = (ndperf.ProcessorTime() - busy).Seconds()
	return json.NewEncoder(first).Encode(sum)
}

// drain reads until the end, and returns how many bytes there were.
func drain(c net.Conn) (total uint64, err error) {
	b := make([]byte, streamBlock)
	for {
		n, err := c.Read(b)
		total += uint64(n)
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// DialStreams sends by n streams to ServeStreams for a time, as fast as it can.
func DialStreams(ctx context.Context, addr string, n int, d time.Duration) (x StreamsResult, err error) {
	var all []*net.TCPConn
	for range n {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return x, err
		}
		defer c.Close()
		all = append(all, c.(*net.TCPConn))
	}
	start, busy := time.Now(), ndperf.ProcessorTime()
	ends := make(chan error, n)
	for _, c := range all {
		go func() { ends <- fill(c, start.Add(d)) }()
	}
	for range all {
		err = errors.Join(err, <-ends)
	}
	if err != nil {
		return x, err
	}
	var there received
	if err := json.NewDecoder(all[0]).Decode(&there); err != nil {
		return x, err
	}
	x.Bytes, x.Seconds = there.Bytes, time.Since(start).Seconds()
	x.Busy = there.Busy + (ndperf.ProcessorTime() - busy).Seconds()
	return x, nil
}

// fill writes until a time.
func fill(c *net.TCPConn, until time.Time) error {
	b := make([]byte, streamBlock)
	for time.Now().Before(until) {
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
	return c.CloseWrite()
}
