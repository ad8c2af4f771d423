package udp

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
)

// BenchmarkLoopback and BenchmarkVeth measure the link alone: one sender and one receiver,
// each on a thread, window-limited like an RC flow, next to a plain TCP sender of
// 128 KB writes over the same path in the same run ("x-TCP" is the ratio of payload rates).

func BenchmarkLoopback(b *testing.B) {
	for _, v := range variants() {
		for _, size := range []int{4096, 1024, 64} {
			b.Run(fmt.Sprintf("%s/%d", v.name, size), func(b *testing.B) {
				to, from := v.open(b), v.open(b)
				rate := flow(b, from, to, size)
				b.ReportMetric(rate/tcpRate(b, netip.MustParseAddr("127.0.0.1"), here, here), "x-TCP")
			})
		}
	}
}

func BenchmarkVeth(b *testing.B) {
	for _, c := range []struct{ mtu, size int }{{9000, 4096}, {1500, 1024}, {1500, 64}} {
		for _, v := range []variant{{"bursts/v4", false, Config{}}, {"bursts/v6", true, Config{}}, {"singly/v4", false, Config{NoSegmentation: true, NoCoalescing: true}}} {
			b.Run(fmt.Sprintf("%s/mtu %d/%d", v.name, c.mtu, c.size), func(b *testing.B) {
				n := newNamespaces(b, c.mtu)
				l := n.pair(v.cfg, v.v6)
				rate := flow(b, l[0], l[1], c.size)
				tcp := tcpRate(b, n.v4[1], func(f func() error) { n.in(1, f) }, func(f func() error) { n.in(0, f) })
				b.ReportMetric(rate/tcp, "x-TCP")
			})
		}
	}
}

func here(f func() error) { _ = f() }

const (
	benchWindow = 512
	benchBatch  = 120
	benchTime   = 400 * time.Millisecond
)

// flow sends packets with payloads of a size for a while, reports Gbit/s and packets/s,
// and returns the former.
func flow(b *testing.B, from, to Link, size int) float64 {
	r := routeTo(b, from, to)
	var arrived, sent atomic.Int64
	var stop atomic.Bool
	receiver := make(chan struct{})
	go func() {
		defer close(receiver)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		in := make([]frame.In, 256)
		for !stop.Load() {
			n, err := to.Receive(in)
			if err != nil {
				b.Error(err)
				return
			}
			if n == 0 {
				runtime.Gosched()
				continue
			}
			arrived.Add(int64(n))
		}
	}()
	payloads := payloadsOf(benchBatch, size)
	frames := packets(r, from.Capabilities(), payloads...)
	b.ResetTimer()
	start := time.Now()
	for stalled := start; time.Since(start) < benchTime; {
		if sent.Load()-arrived.Load() > benchWindow {
			runtime.Gosched()
			if time.Since(stalled) > 5*time.Millisecond { // lost: a real flow would send again
				arrived.Store(sent.Load())
			}
			continue
		}
		n, err := from.Send(frames)
		if err != nil {
			b.Fatal(err)
		}
		sent.Add(int64(n))
		stalled = time.Now()
	}
	took := time.Since(start)
	stop.Store(true)
	<-receiver
	packets := float64(to.Stats().ReceivedPackets)
	rate := packets * float64(size) * 8 / took.Seconds() / 1e9
	b.ReportMetric(rate, "Gbit/s")
	b.ReportMetric(packets/took.Seconds()/1e6, "Mpackets/s")
	b.ReportMetric(0, "ns/op")
	return rate
}

// tcpRate sends over TCP for as long, and returns Gbit/s.
func tcpRate(b *testing.B, at netip.Addr, server, client func(func() error)) float64 {
	var l net.Listener
	server(func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
		return err
	})
	defer l.Close()
	var c net.Conn
	client(func() (err error) {
		c, err = net.Dial("tcp", l.Addr().String())
		return err
	})
	s, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	total := make(chan int64)
	go func() {
		n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{s}, make([]byte, 1<<20))
		s.Close()
		total <- n
	}()
	start := time.Now()
	for data := make([]byte, 128<<10); time.Since(start) < benchTime; {
		if _, err := c.Write(data); err != nil {
			b.Fatal(err)
		}
	}
	c.Close()
	n := <-total
	return float64(n) * 8 / time.Since(start).Seconds() / 1e9
}
