package remote_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// TestAway_Overflow: a completion queue that its program does not empty ends, with the same events by a stream as without: its own, and
// those of the queue pairs that complete to it and work. Others go on.
func TestAway_Overflow(t *testing.T) {
	addrs := testbed.Addrs()
	driver, _ := testbed.Driver(t, addrs)
	socket, _ := away(t, driver)
	for name, at := range map[string]string{"at the driver": driver, "by a stream": socket} {
		t.Run(name, func(t *testing.T) {
			e := newEnd(t, at, addrs[0], 4096)
			pd, dev := e.qp.PD(), e.qp.PD().Device()
			other, err := dev.CreateCQ(16)
			ok(t, err)
			pair := func(send, recv *verbs.CQ, depth int) *verbs.QP {
				t.Helper()
				q, err := pd.CreateQP(verbs.QPConfig{SendCQ: send, RecvCQ: recv, SendDepth: 16, RecvDepth: depth, RecvSGE: 1})
				ok(t, err)
				return q
			}
			works := func(q *verbs.QP) {
				t.Helper()
				ok(t, q.Modify(verbs.QPAttr{State: verbs.StateInit}, verbs.MaskState|verbs.MaskPKeyIndex|verbs.MaskAccess))
			}
			full, sends, receives, apart := pair(e.cq, e.cq, 128), pair(e.cq, other, 16), pair(other, e.cq, 16), pair(other, other, 16)
			works(sends)
			works(receives)
			works(apart)
			w := e.host.Watch()
			defer w.Close()
			ok(t, full.Flush())
			for id := range uint64(100) { // more than the queue holds, and fewer than two do
				wr := verbs.RecvWR{ID: id}
				await.Eventually(t, "there is room for a receive", func() bool { return full.PostRecv(&wr) == nil })
			}
			var got []verbs.Event
			for len(got) < 3 {
				v, err := w.Next(testbed.Context(t))
				ok(t, err)
				got = append(got, v)
			}
			if got[0].Type != verbs.EventCQError || got[0].Object != uint32(e.cq.Handle()) || got[0].Device != dev.Index() {
				t.Errorf("the first event is %+v, want %v of %#x", got[0], verbs.EventCQError, e.cq.Handle())
			}
			for _, q := range []*verbs.QP{sends, receives} {
				if !slices.ContainsFunc(got[1:], func(v verbs.Event) bool {
					return v.Type == verbs.EventQPFatal && v.Object == uint32(q.Handle()) && v.Device == dev.Index()
				}) {
					t.Errorf("no %v of %#x among %+v", verbs.EventQPFatal, q.Handle(), got[1:])
				}
				if a, err := q.Query(); err != nil || a.State != verbs.StateError {
					t.Errorf("a queue pair of it is %v, %v", a.State, err)
				}
			}
			if a, err := apart.Query(); err != nil || a.State != verbs.StateInit {
				t.Errorf("another queue pair is %v, %v", a.State, err)
			}
			await.Eventually(t, "polling fails", func() bool {
				var wc [64]verbs.WC
				_, err := e.cq.Poll(wc[:])
				return errors.Is(err, verbs.ErrOverflow)
			})
			ok(t, other.Err())
		})
	}
}
