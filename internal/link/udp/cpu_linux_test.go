package udp

import (
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/packet"
)

// threadTime returns this thread's processor time in nanoseconds, the only clock that says what a call costs on a
// busy machine.
func threadTime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return t.Nano()
}

// BenchmarkProcessorTime measures the time that one thread spends to send and to receive packets over loopback, where
// sending includes the delivery, beside sendto and recvfrom; and across veth with and without what receives frames.
func BenchmarkProcessorTime(b *testing.B) {
	measure := func(b *testing.B, packets int, round func()) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		start := threadTime()
		for b.Loop() {
			round()
		}
		b.ReportMetric(float64(threadTime()-start)/float64(b.N*packets), "cpu-ns/packet")
	}
	for _, c := range []struct {
		name         string
		packets, len int
		cfg          Config
	}{
		{"one of 64", 1, 48, Config{}},
		{"one of 64, singly", 1, 48, Config{NoSegmentation: true, NoCoalescing: true}},
		{"one of 4096", 1, 4096, Config{}},
		{"60 of 64", 60, 48, Config{}},
		{"60 of 1024", 60, 1024, Config{}},
		{"60 of 1024, singly", 60, 1024, Config{NoSegmentation: true, NoCoalescing: true}},
		{"60 of 4096", 60, 4096, Config{}},
		{"60 of 4096, singly", 60, 4096, Config{NoSegmentation: true, NoCoalescing: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			v := variant{cfg: c.cfg}
			from, to := v.open(b), v.open(b)
			frames := packets(routeTo(b, from, to), from.Capabilities(), payloadsOf(c.packets, c.len)...)
			in := make([]frame.In, 64)
			measure(b, c.packets, func() {
				sendAll(b, from, frames)
				for got := 0; got < len(frames); {
					n, err := to.Receive(in)
					if err != nil || n == 0 {
						b.Fatal(n, err)
					}
					got += n
				}
			})
		})
	}
	for _, c := range []struct {
		size int
		cut  bool // into single packets, on their way
	}{{1024, false}, {1024, true}, {4096, false}, {4096, true}} {
		for _, mode := range []packet.Mode{packet.Off, packet.Auto} {
			b.Run(fmt.Sprintf("60 of %d across veth, cut %v, frames %v", c.size, c.cut, mode), func(b *testing.B) {
				n := newNamespaces(b, 9000)
				l := n.pairOf([2]Config{{NoSegmentation: c.cut, Frames: packet.Off}, {Frames: mode}}, false)
				frames := packets(routeTo(b, l[0], l[1]), l[0].Capabilities(), payloadsOf(60, c.size)...)
				in := make([]frame.In, 64)
				measure(b, len(frames), func() {
					sendAll(b, l[0], frames)
					for got := 0; got < len(frames); {
						n, err := l[1].Receive(in)
						if err != nil || n == 0 {
							b.Fatal(n, err)
						}
						got += n
					}
				})
			})
		}
	}
	b.Run("sendto and recvfrom of 64", func(b *testing.B) {
		from, to := variant{}.open(b).(*socketLink), variant{}.open(b).(*socketLink)
		at := unix.SockaddrInet4{Port: int(to.cfg.Port), Addr: to.cfg.Addr.As4()}
		buf := make([]byte, 64)
		measure(b, 1, func() {
			if err := unix.Sendto(from.fd, buf, 0, &at); err != nil {
				b.Fatal(err)
			}
			if n, err := unix.Read(to.fd, buf); n != 64 || err != nil {
				b.Fatal(n, err)
			}
		})
	})
}
