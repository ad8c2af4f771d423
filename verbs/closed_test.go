package verbs_test

import (
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// A closed object accepts no requests and returns no completions: its rings may already belong to a newer object.
func TestUseAfterClose(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		dev := b.Device(t, 0)
		pd := must(dev.AllocPD())(t)
		mr := must(pd.Allocate(64, verbs.LocalWrite))(t)
		wr := &verbs.RecvWR{SGE: []verbs.SGE{mr.SGE(0, 64)}}

		cq := must(dev.CreateCQ(8))(t)
		config := verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 8, RecvDepth: 8}
		old := must(pd.CreateQP(config))(t)
		wantErr(t, cq.Close(), verbs.ErrBusy)
		_, err := cq.Poll(make([]verbs.WC, 1))
		ok(t, err) // this one was not closed
		ok(t, old.Close())
		qp := must(pd.CreateQP(config))(t)
		wantErr(t, old.PostRecv(wr), verbs.ErrClosed)
		wantErr(t, old.PostSend(&verbs.SendWR{}), verbs.ErrClosed)
		if info := must(qp.Query())(t); info.RecvPosted != 0 || info.SendPosted != 0 {
			t.Errorf("posting to a closed QP left %d receives and %d requests with the next", info.RecvPosted, info.SendPosted)
		}
		ok(t, qp.Close())
		ok(t, cq.Close())
		_, err = cq.Poll(make([]verbs.WC, 1))
		wantErr(t, err, verbs.ErrClosed)
		wantErr(t, cq.Err(), verbs.ErrClosed)
		if cq.Pending(verbs.NotifyAny) {
			t.Error("a closed CQ has completions")
		}
		if err := cq.Wait(testbed.Context(t), cq.Arm(verbs.NotifyAny)); err == nil {
			t.Error("waited for a closed CQ")
		}

		srq := must(pd.CreateSRQ(verbs.SRQConfig{Depth: 8}))(t)
		ok(t, srq.Close())
		next := must(pd.CreateSRQ(verbs.SRQConfig{Depth: 8}))(t)
		wantErr(t, srq.PostRecv(wr), verbs.ErrClosed)
		if info := must(next.Query())(t); info.Posted != 0 {
			t.Errorf("posting to a closed SRQ left %d receives with the next", info.Posted)
		}
		ok(t, next.Close())
		ok(t, mr.Deregister())
		ok(t, pd.Close())
	})
}
