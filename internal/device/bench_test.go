package device

import (
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

func benchPair(b *testing.B, n network, depth uint32) *connected {
	x, y := n.make(b, AdapterConfig{Path: PathWire})
	q := command.CreateQP{SendDepth: depth, RecvDepth: depth, SendSGE: 1, RecvSGE: 1, Inline: 64}
	return connect(x.qp(q, x.cq(4*depth)), y.qp(q, y.cq(4*depth)))
}

// BenchmarkWrite writes messages of one size, as many at a time as a queue of 64 holds.
func BenchmarkWrite(b *testing.B) {
	for _, n := range networks[:1] {
		for _, size := range []int{64, 4096, 65536, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%d", n.name, size), func(b *testing.B) { benchWrite(b, benchPair(b, n, 64), size) })
		}
	}
}

// BenchmarkWriteSingly is BenchmarkWrite with 64-byte messages and one doorbell for each.
func BenchmarkWriteSingly(b *testing.B) {
	benchWrites(b, benchPair(b, networks[0], 64), 64, true)
}

func benchWrite(b *testing.B, c *connected, size int) { benchWrites(b, c, size, false) }

func benchWrites(b *testing.B, c *connected, size int, singly bool) {
	const set = 16 << 20
	src, dst := c.a.p.buffer(set), c.b.p.buffer(set)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	var cqes [64]ring.CQE
	wr := ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RKey: dst.mem.RKey}
	for posted, done, off := 0, 0, 0; done < b.N; {
		rang := false
		for posted < b.N && posted-done < 64 {
			wr.RemoteAddr, wr.SGE[0] = dst.addr(off), src.sge(off, size)
			if c.a.send.Post(&wr) != nil {
				break
			}
			if off += size; off+size > set {
				off = 0
			}
			posted++
			if singly {
				c.a.p.c.Doorbell(c.a.q.Handle)
				continue
			}
			rang = true
		}
		if rang {
			c.a.p.c.Doorbell(c.a.q.Handle)
		}
		n := c.a.cq.Poll(cqes[:])
		for i := range cqes[:n] {
			if cqes[i].Status != ring.Success {
				b.Fatal(cqes[i].Status)
			}
		}
		if done += n; n == 0 {
			c.a.p.c.Poll(1)
		}
	}
	b.StopTimer()
	x, y := c.a.p.host.Snapshot().Adapters[c.a.p.adapter], c.b.p.host.Snapshot().Adapters[c.b.p.adapter]
	if x.Retransmits > 0 {
		b.ReportMetric(float64(x.Retransmits), "retransmits")
	}
	b.ReportMetric(float64(b.N)/float64(y.Link.SentPackets), "writes/ack")
	b.ReportMetric(float64(x.Link.SentPackets)/float64(x.Link.SentBursts), "packets/burst")
}

// BenchmarkTCP moves the same bytes over TCP on the same path, to compare BenchmarkWrite with.
func BenchmarkTCP(b *testing.B) {
	for _, size := range []int{64, 4096, 65536, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			x, y := tcpPair(b)
			const set = 16 << 20
			src, dst := make([]byte, set), make([]byte, set)
			b.SetBytes(int64(size))
			b.ResetTimer()
			done := make(chan struct{})
			go func() {
				defer close(done)
				off := 0
				for left := b.N * size; left > 0; {
					n, err := y.Read(dst[off:min(set, off+max(size, 64<<10))])
					if err != nil {
						b.Error(err)
						return
					}
					if left -= n; off+n < set {
						off += n
					} else {
						off = 0
					}
				}
			}()
			off := 0
			for range b.N {
				if _, err := x.Write(src[off : off+size]); err != nil {
					b.Fatal(err)
				}
				if off += size; off+size > set {
					off = 0
				}
			}
			<-done
		})
	}
}

func tcpPair(b *testing.B) (x, y net.Conn) {
	addr := loopback.Addr()
	l, err := net.Listen("tcp", net.JoinHostPort(addr.String(), "0"))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if x, err = net.Dial("tcp", l.Addr().String()); err != nil {
		b.Fatal(err)
	}
	if y, err = l.Accept(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.Close(); y.Close() })
	return x, y
}

// BenchmarkLatency reports half of a round trip of 32-byte sends, with both sides polling or both waiting for events.
func BenchmarkLatency(b *testing.B) {
	for _, mode := range []string{"poll", "events"} {
		b.Run(mode, func(b *testing.B) { benchLatency(b, mode == "events") })
	}
}

func benchLatency(b *testing.B, events bool) {
	c := benchPair(b, networks[0], 64)
	bufA, bufB := c.a.p.buffer(64), c.b.p.buffer(64)
	next := func(q *queue) {
		for {
			var e ring.CQE
			if events {
				e = q.wait()
			} else {
				e = q.next()
			}
			if e.Op == ring.CQRecv {
				return
			}
		}
	}
	done := make(chan struct{})
	n := b.N
	go func() {
		defer close(done)
		c.b.postRecv(0, bufB.sge(0, 32))
		for i := range n {
			next(c.b.cq)
			if i+1 < n {
				c.b.postRecv(0, bufB.sge(0, 32))
			}
			c.b.postSend(0, ring.OpSend, bufB.sge(0, 32))
		}
	}()
	times := make([]time.Duration, 0, n)
	b.ResetTimer()
	for range n {
		t := time.Now()
		c.a.postRecv(0, bufA.sge(0, 32))
		c.a.postSend(0, ring.OpSend, bufA.sge(32, 32))
		next(c.a.cq)
		times = append(times, time.Since(t))
	}
	b.StopTimer()
	<-done
	reportOneWay(b, times)
}

func reportOneWay(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/2000, "us/median")
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/2000, "us/99%")
}

func BenchmarkTCPLatency(b *testing.B) {
	x, y := tcpPair(b)
	n := b.N
	go func() {
		var m [32]byte
		for range n {
			if _, err := io.ReadFull(y, m[:]); err != nil {
				return
			}
			if _, err := y.Write(m[:]); err != nil {
				return
			}
		}
	}()
	var m [32]byte
	times := make([]time.Duration, 0, n)
	b.ResetTimer()
	for range n {
		t := time.Now()
		if _, err := x.Write(m[:]); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(x, m[:]); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(t))
	}
	b.StopTimer()
	reportOneWay(b, times)
}
