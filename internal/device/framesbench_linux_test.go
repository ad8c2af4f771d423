package device

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/ring"
)

// BenchmarkFrames sends frames of 64 bytes in bursts of 32 from a raw packet QP of one adapter to a flow of another at the same
// port, with no process but this one: what a frame costs the program that sends it, the loop, and the program that receives it,
// each without the wake-ups and caches of others. The whole is the time of an operation. Of datagrams the receiver is told whether
// their checksums are right, which the sender may have made.
func BenchmarkFrames(b *testing.B) {
	to, from := [6]byte{2, 0, 0, 0, 9, 1}, [6]byte{2, 0, 0, 0, 9, 2}
	other := udpFrame(to, from, 7, 64)
	copy(other[12:], []byte{0x88, 0xb5})
	for _, c := range []struct {
		name  string
		f     []byte
		flags ring.WRFlags
	}{
		{"other", other, 0},
		{"UDP", udpFrame(to, from, 7, 64), 0},
		{"UDP with checksums", udpFrame(to, from, 7, 64), ring.Checksums},
		{"1500 bytes", udpFrame(to, from, 7, 1514), 0},
		{"1500 bytes with checksums", udpFrame(to, from, 7, 1514), ring.Checksums},
	} {
		binary.BigEndian.PutUint16(c.f[38:], uint16(len(c.f)-34)) // UDP's length
		b.Run(c.name, func(b *testing.B) { benchFrames(b, c.f, c.flags) })
	}
}

func benchFrames(b *testing.B, f []byte, flags ring.WRFlags) {
	const burst, depth = 32, 256
	size := len(f)
	one, two, _ := threeEnds(b)
	h := one.host
	rx, tx := one.rawEndOf(depth), two.rawEndOf(depth)
	rx.flow(toMAC([6]byte(f), 0))
	var send ring.SendWR
	send.Op, send.NumSGE = ring.OpSend, 1
	for i := range burst {
		copy(tx.b.b[size*i:], f)
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
			send.ID, send.Flags, send.SGE[0] = uint64(i), flags, tx.b.sge(size*i, size)
			if i == burst-1 {
				send.Flags |= ring.Signaled
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
				if e := &cqes[i]; e.Status != ring.Success || int(e.ByteLen) != size {
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
