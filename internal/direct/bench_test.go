package direct

import (
	"testing"

	"github.com/softvpi/softvpi/internal/ring"
)

// BenchmarkSend measures what a send of 64 bytes takes both sides with everything in the nearest cache: the receive
// is posted, the message sent, and both completions polled.
func BenchmarkSend(b *testing.B) {
	x := newBench(b)
	wr := x.wr(ring.OpSend, x.sge(0, 64))
	r := &ring.RecvWR{ID: 7, NumSGE: 1}
	r.SGE[0] = ring.SGE{Addr: peerBase, Length: 64, LKey: peerKey}
	var e [2]ring.CQE
	for b.Loop() {
		if err := x.post.Post(r); err != nil {
			b.Fatal(err)
		}
		if !x.i.Execute(wr) || x.recvCQ.Poll(e[:]) != 1 || x.sendCQ.Poll(e[:]) != 1 {
			b.Fatal("not sent")
		}
	}
}
