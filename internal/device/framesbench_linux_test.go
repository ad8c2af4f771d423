package device

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/ring"
)

// BenchmarkFrames sends frames of 64 bytes in bursts of 32 from a raw packet QP of one adapter to a flow of another at the same
// port, with no process but this one: what a frame costs the program that sends it, the loop, and the program that receives it,
// each without the wake-ups and caches of others. The whole is the time of an operation.
func BenchmarkFrames(b *testing.B) {
	const burst, size, depth = 32, 64, 256
	one, two, _ := threeEnds(b)
	h := one.host
	to := [6]byte{2, 0, 0, 0, 9, 1}
	rx, tx := one.rawEndOf(depth), two.rawEndOf(depth)
	flow := toMAC(to, 0)
	flow.Value.EtherType, flow.Mask.EtherType = 0x88b5, 0xffff
	rx.flow(flow)
	var send ring.SendWR
	send.Op, send.NumSGE = ring.OpSend, 1
	for i := range burst {
		f := tx.b.b[size*i:]
		copy(f, to[:])
		copy(f[6:], []byte{2, 0, 0, 0, 9, 2, 0x88, 0xb5})
	}
	post := func(n int) {
		for range n {
			if err := rx.recv.PostList(0, []ring.SGE{rx.b.sge(0, size)}); err != nil {
				b.Fatal(err)
			}
		}
	}
	post(depth)
	var cqes [burst]ring.CQE
	var sender, loop, receiver time.Duration
	h.lock() // nobody else drives the loop
	defer h.unlock()
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += burst {
		began := time.Now()
		for i := range burst {
			send.ID, send.Flags, send.SGE[0] = uint64(i), 0, tx.b.sge(size*i, size)
			if i == burst-1 {
				send.Flags = ring.Signaled
			}
			if err := tx.send.Put(&send); err != nil {
				b.Fatal(err)
			}
		}
		two.c.doorbells.Ring(uint32(tx.q.Handle))
		posted := time.Now()
		sender += posted.Sub(began)
		for got, sent := 0, 0; got < burst || sent < 1; {
			before := time.Now()
			h.step()
			turned := time.Now()
			n := rx.cq.Poll(cqes[:])
			for i := range cqes[:n] {
				if e := &cqes[i]; e.Status != ring.Success || e.ByteLen != size {
					b.Fatalf("%v, %d bytes", e.Status, e.ByteLen)
				}
			}
			got += n
			post(n)
			polled := time.Now()
			sent += tx.cq.Poll(cqes[:])
			loop += turned.Sub(before)
			receiver += polled.Sub(turned)
			sender += time.Since(polled)
		}
	}
	b.StopTimer()
	for name, d := range map[string]time.Duration{"sender": sender, "loop": loop, "receiver": receiver} {
		b.ReportMetric(float64(d.Nanoseconds())/float64(b.N), name+"-ns/op")
	}
}
