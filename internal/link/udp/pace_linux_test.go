package udp

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestReceivePace: a Receive takes long bursts a few at a time, into the same buffers, and short packets as many as
// the batch holds.
func TestReceivePace(t *testing.T) {
	v := variant{"bursts", false, Config{Frames: packet.Off}}
	from, to := v.open(t), v.open(t)
	l, ok := to.(*socketLink)
	if !ok || !l.gro || !from.Status().Segmentation {
		t.Skip("this kernel coalesces no datagrams")
	}
	route := routeTo(t, from, to)
	for _, step := range []struct {
		name   string
		bursts int
		each   int // packets per burst
		size   int
		most   int // messages that the first Receive takes at most
		next   int // messages that a later one takes at most
	}{
		{"long bursts at first", 3, 20, 1024, defaultBatch, longMost},
		{"long bursts", 6, 20, 1024, longMost, longMost},
		{"short packets", longMost, 1, 64, longMost, defaultBatch},
		{"short packets after such", 2 * longMost, 1, 64, defaultBatch, defaultBatch},
	} {
		for range step.bursts {
			sendAll(t, from, packets(route, from.Capabilities(), payloadsOf(step.each, step.size)...))
		}
		in := make([]frame.In, 256)
		first := 0
		deadline := time.Now().Add(await.Limit)
		for got, left := 0, step.bursts*step.each; got < left; {
			n, err := to.Receive(in)
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 && first == 0 {
				first = l.receive.batch.n
			}
			if got += n; n == 0 && time.Now().After(deadline) {
				t.Fatalf("%s: %d of %d packets arrived", step.name, got, left)
			}
		}
		if first > step.most || l.receive.batch.most != step.next {
			t.Errorf("%s: took %d messages and will take %d, want at most %d and %d", step.name, first, l.receive.batch.most, step.most,
				step.next)
		}
	}
}

// TestReceivePaceOfOne: a Receive never takes more messages than there is room for.
func TestReceivePaceOfOne(t *testing.T) {
	r := &batch{}
	r.init(Config{Batch: 1}, true)
	r.messages[0].length = 60 << 10
	if r.pace(1); r.most != 1 {
		t.Errorf("a batch of one takes %d messages, want 1", r.most)
	}
}

// TestReceivePaceOfLoneMessages: after enough messages that came alone, a Receive asks for one only, until two come
// together.
func TestReceivePaceOfLoneMessages(t *testing.T) {
	r := &batch{}
	r.init(Config{Batch: defaultBatch}, true)
	for i := range r.messages {
		r.messages[i].length = 64
	}
	for i := range loneMessages {
		if r.most != defaultBatch {
			t.Fatalf("after %d lone messages it takes %d, want %d", i, r.most, defaultBatch)
		}
		r.came = false // nothing came
		r.pace(1)
	}
	if r.most != 1 {
		t.Errorf("after %d lone messages it takes %d, want 1", loneMessages, r.most)
	}
	if r.pace(1); r.most != defaultBatch {
		t.Errorf("after two messages together it takes %d, want %d", r.most, defaultBatch)
	}
}

// TestReceivePaceOfSizes: a Receive takes as many single packets as there is room for, and fewer bursts the longer
// they are.
func TestReceivePaceOfSizes(t *testing.T) {
	r := &batch{}
	r.init(Config{Batch: defaultBatch}, true)
	for _, c := range []struct {
		name         string
		length, most int
	}{
		{"acknowledgements", 20, defaultBatch},
		{"packets of path MTU 1024", 1060, defaultBatch},
		{"packets of path MTU 4096", 4140, defaultBatch},
		{"short bursts", 8 << 10, burstMost},
		{"long bursts", 60 << 10, longMost},
		{"packets again", 1060, defaultBatch},
	} {
		n := r.most
		for i := range r.messages[:n] {
			r.messages[i].length = uint32(c.length)
		}
		if r.pace(n); r.most != c.most {
			t.Errorf("%s: takes %d messages then, want %d", c.name, r.most, c.most)
		}
	}
}
