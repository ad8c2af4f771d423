package udp

import (
	"runtime"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
)

// shapes are the lengths, without BTH and ICRC, of the packets of a message of 4 KB with a path MTU of 1024: a write's first
// packet has a RETH, the first and last of a read's answer an AETH.
var shapes = []struct {
	name    string
	lengths []int
}{
	{"send", []int{1024, 1024, 1024, 1024}},
	{"write", []int{16 + 1024, 1024, 1024, 1024}},
	{"read", []int{4 + 1024, 1024, 1024, 4 + 1024}},
}

// messagesAtOnce is how many messages are sent in one call.
const messagesAtOnce = 15

// BenchmarkMessages measures what the packets of messages of 4 KB cost across veth with MTU 1500 without an engine: the
// processor time of a message at the sender, where the system also brings it to the receiver's socket, and at the
// receiver. Gb/s (2^30 bits) is what the busier of the two could do at most with a processor of its own, the ceiling of
// "softvpi bench --part veth1500 --row 'of 4 KB'".
func BenchmarkMessages(b *testing.B) {
	for _, c := range shapes {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			n := newNamespaces(b, 1500)
			l := n.pair(Config{}, false)
			var lengths []int
			for range messagesAtOnce {
				lengths = append(lengths, c.lengths...)
			}
			frames := burstsOf(numbered(routeTo(b, l[0], l[1]), l[0].Capabilities(), 0, lengths...))
			sendAll(b, l[0], frames)
			receiveN(b, l[1], len(frames))
			for side := range l { // by now the neighbours are known
				n.in(side, func() error { tend(l[side]); return nil })
			}
			in := make([]frame.In, len(frames))
			var sending, receiving int64
			for b.Loop() {
				before := threadTime()
				sendAll(b, l[0], frames)
				sent := threadTime()
				for got := 0; got < len(frames); {
					n, err := l[1].Receive(in)
					if err != nil || n == 0 {
						b.Fatal(n, err)
					}
					got += n
				}
				sending, receiving = sending+sent-before, receiving+threadTime()-sent
			}
			messages := float64(b.N * messagesAtOnce)
			b.ReportMetric(float64(sending)/messages, "sender-ns/message")
			b.ReportMetric(float64(receiving)/messages, "receiver-ns/message")
			b.ReportMetric(4096*8/float64(1<<30)*1e9*messages/float64(max(sending, receiving)), "Gb/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// burstsOf numbers the packets as encap does: a burst ends before a longer packet, and behind a shorter one.
func burstsOf(frames []frame.Out) []frame.Out {
	begins := 0
	for i := range frames {
		if o := &frames[i]; i == begins || o.Len() > frames[begins].Len() || frames[i-1].Len() < frames[begins].Len() ||
			i-begins == maxSegments || (i-begins+1)*frames[begins].Len() > maxBurst {
			begins = i
		}
		frames[i].Segment = uint16(i - begins)
	}
	return frames
}
