package udp

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// BenchmarkLoopback and BenchmarkVeth measure the link alone: one sending and one receiving thread, limited by a
// window as an RC flow is, beside a TCP sender with writes of 128 KB over the same path in the same run, and iperf3
// where it is installed. x-TCP and x-iperf3 are the ratios of the payload rates.

func BenchmarkLoopback(b *testing.B) {
	for _, v := range variants() {
		for _, size := range []int{4096, 1024, 64} {
			b.Run(fmt.Sprintf("%s/%d", v.name, size), func(b *testing.B) {
				to, from := v.open(b), v.open(b)
				compare(b, from, to, size, netip.MustParseAddr("127.0.0.1"), here, here)
			})
		}
	}
}

func BenchmarkVeth(b *testing.B) {
	for _, c := range []struct{ mtu, size int }{{9000, 4096}, {1500, 1024}, {1500, 64}} {
		for _, v := range []variant{{"bursts/v4", false, Config{}}, {"bursts/v6", true, Config{}},
			{"singly/v4", false, Config{NoSegmentation: true, NoCoalescing: true}}} {
			b.Run(fmt.Sprintf("%s/mtu %d/%d", v.name, c.mtu, c.size), func(b *testing.B) {
				n := newNamespaces(b, c.mtu)
				l := n.pair(v.cfg, v.v6)
				compare(b, l[0], l[1], c.size, n.V4[1], func(f func() error) { n.in(1, f) }, func(f func() error) { n.in(0, f) })
			})
		}
	}
}

func here(f func() error) { _ = f() }

// yield gives the processor to another thread, as a loop without work does.
func yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

const (
	benchWindow = 512
	benchBatch  = 120
	benchTime   = 250 * time.Millisecond
	benchRounds = 5
)

// flow sends packets with payloads of size bytes for benchTime and returns Gbit/s.
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
		var sleep []unix.PollFd
		for _, fd := range to.Descriptors() {
			sleep = append(sleep, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
		idle := 0
		for !stop.Load() {
			n, err := to.Receive(in)
			if err != nil {
				b.Error(err)
				return
			}
			if n == 0 {
				if idle++; idle < 20 || len(sleep) == 0 {
					yield()
				} else {
					unix.Poll(sleep, 1)
				}
				continue
			}
			idle = 0
			arrived.Add(int64(n))
		}
	}()
	payloads := payloadsOf(benchBatch, size)
	frames := packets(r, from.Capabilities(), payloads...)
	before := to.Stats().ReceivedPackets
	start := time.Now()
	for stalled := start; time.Since(start) < benchTime; {
		if sent.Load()-arrived.Load() > benchWindow {
			yield()
			if time.Since(stalled) > 5*time.Millisecond { // lost packets: a real flow would send again
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
	return float64(to.Stats().ReceivedPackets-before) * float64(size) * 8 / took.Seconds() / 1e9
}

// compare sends over the link, TCP and iperf3 in turn and reports the medians.
func compare(b *testing.B, from, to Link, size int, at netip.Addr, server, client func(func() error)) {
	var rates, tcp, iperf []float64
	for range benchRounds {
		rates = append(rates, flow(b, from, to, size))
		tcp = append(tcp, tcpRate(b, at, server, client))
		iperf = append(iperf, iperfRate(b, at, server, client))
	}
	median := func(all []float64) float64 {
		slices.Sort(all)
		return all[len(all)/2]
	}
	rate := median(rates)
	b.ReportMetric(rate, "Gbit/s")
	b.ReportMetric(rate*1e3/8/float64(size), "Mpackets/s")
	b.ReportMetric(rate/median(tcp), "x-TCP")
	if other := median(iperf); other > 0 {
		b.ReportMetric(rate/other, "x-iperf3")
	}
	b.ReportMetric(0, "ns/op")
}

// iperfRate returns iperf3's rate in Gbit/s, or 0 if it is not installed or does not run.
func iperfRate(b *testing.B, at netip.Addr, server, client func(func() error)) float64 {
	path, err := exec.LookPath("iperf3")
	if err != nil {
		return 0
	}
	port := strconv.Itoa(int(loopback.Port()))
	s := exec.Command(path, "-s", "-1", "-B", at.String(), "-p", port)
	server(s.Start)
	defer s.Wait()
	defer s.Process.Kill()
	var report struct {
		End struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	for range 50 { // until the server listens
		var out []byte
		client(func() error {
			out, _ = exec.Command(path, "-J", "-c", at.String(), "-p", port, "-t", "1").Output()
			return nil
		})
		if json.Unmarshal(out, &report) == nil && report.End.Received.Rate > 0 {
			return report.End.Received.Rate / 1e9
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.Log("iperf3 gave no result")
	return 0
}

// tcpRate sends over TCP for benchTime and returns Gbit/s.
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
