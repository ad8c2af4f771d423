package udp

import (
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// looks has a link look at its traffic n times, with the given numbers of long and short messages each time.
func (l *socketLink) looks(n, long, short int) {
	for range n {
		l.receive.all, l.receive.long, l.frames.ringed = long+short, long, 0
		l.changeShift(l.frames.bulk.last.Add(lookTime))
	}
}

// TestBulkShifts: a link stops using its ring when bursts keep coming, and uses it again when they have ended or as
// many short packets come.
func TestBulkShifts(t *testing.T) {
	systemtest.Mark(t)
	n := newNamespaces(t, 9000)
	pair := n.pairOf([2]Config{}, false)
	l := pair[1].(*socketLink)
	if s := l.Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	l.frames.bulk.last = time.Now()
	for i, step := range []struct {
		looks, long, short int
		want               shift
	}{
		{busyLooks - 1, busyLong, 0, ringTakes},
		{1, busyLong, busyLong + 1, ringTakes}, // not in a row
		{busyLooks - 1, busyLong, 0, ringTakes},
		{1, busyLong, busyLong, socketTakes},
		{calmLooks - 1, 0, 0, socketTakes},
		{1, calmLong, 0, socketTakes},
		{calmLooks - 1, calmLong, calmLong + 1, socketTakes},
		{1, calmLong - 1, 0, bothTake},
		{1, busyLong, 0, ringTakes},
		{busyLooks, busyLong, 0, socketTakes},
		{calmLooks, 0, 0, bothTake},
		{1, 0, 0, ringTakes},
	} {
		if l.looks(step.looks, step.long, step.short); l.frames.bulk.shift != step.want {
			t.Fatalf("after step %+v the shift is %d", step, l.frames.bulk.shift)
		}
		r := routeTo(t, pair[0], pair[1])
		before := l.Stats().ReceivedFrames
		sendAll(t, pair[0], numbered(r, pair[0].Capabilities(), 10*uint32(i), 8, 4096, 0))
		receiveN(t, l, 3)
		if k := receiveSome(t, l); k != 0 {
			t.Errorf("shift %d: %d packets came twice", step.want, k)
		}
		if got := l.Stats().ReceivedFrames - before; (got > 0) != (step.want == ringTakes) {
			t.Errorf("shift %d: %d packets came from the ring", step.want, got)
		}
	}
	l.looks(1, 0, 0)
	if s := l.Stats(); s.ReceiveDrops != 0 {
		t.Errorf("%d packets count as dropped, want none", s.ReceiveDrops)
	}
}

// TestBulkShiftsLoseNothing: packets under way while the shift changes arrive exactly once.
func TestBulkShiftsLoseNothing(t *testing.T) {
	systemtest.Mark(t)
	framePairs(t, func(t *testing.T, n *namespaces, pair [2]Link, modes [2]packet.Mode) {
		l := pair[1].(*socketLink)
		if modes[1] == packet.Off {
			t.Skip("no ring")
		}
		const all, window = 20_000, 300
		r := routeTo(t, pair[0], pair[1])
		tend(pair[0])
		var arrived, stop atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			random := rand.New(rand.NewPCG(3, 4))
			for next := uint32(0); next < all && stop.Load() == 0; {
				if int64(next)-arrived.Load() > window {
					time.Sleep(20 * time.Microsecond)
					continue
				}
				lengths := []int{8}
				for range random.IntN(4) {
					lengths = append(lengths, []int{0, 8, 200, 1024, 1024, 4096}[random.IntN(6)])
				}
				frames := numbered(r, pair[0].Capabilities(), next, lengths...)
				for sent := 0; sent < len(frames); {
					k, err := pair[0].Send(frames[sent:])
					if err != nil {
						t.Error(err)
						return
					}
					sent += k
				}
				next += uint32(len(lengths))
			}
		}()
		defer func() { stop.Store(1); <-done }()
		seen := make(map[uint32]int)
		in := make([]frame.In, 64)
		l.frames.bulk.last = time.Now()
		turn, last := 0, time.Now()
		for deadline := time.Now().Add(await.Limit); len(seen) < all; {
			k, err := l.Receive(in)
			if err != nil {
				t.Fatal(err)
			}
			for i := range in[:k] {
				psn := binary.BigEndian.Uint32(in[i].Data[8:])
				if seen[psn]++; seen[psn] > 1 {
					t.Fatalf("packet %d came twice, in shift %d", psn, l.frames.bulk.shift)
				}
			}
			arrived.Store(int64(len(seen)))
			if time.Since(last) < 2*time.Millisecond {
				if time.Now().After(deadline) {
					t.Fatalf("%d of %d packets arrived: %+v", len(seen), all, l.Stats())
				}
				continue
			}
			last = time.Now()
			turn++
			switch l.frames.bulk.shift {
			case ringTakes, bothTake:
				l.looks(1, busyLong, 0)
			case socketTakes:
				l.frames.bulk.row = calmLooks - 1
				l.looks(1, 0, 0)
			}
		}
		if turn < 3 {
			t.Logf("only %d changes of shift", turn)
		}
		if k := receiveSome(t, l); k != 0 {
			t.Errorf("%d packets came twice", k)
		}
	})
}
