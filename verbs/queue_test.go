package verbs_test

import (
	"context"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// The reported atomic capability is correct: process_vm has no atomics.
func TestAtomicCapability(t *testing.T) {
	for _, c := range []struct {
		path string
		want bool
	}{{"process_vm", false}, {"copier", true}} {
		t.Setenv("SOFTVPI_MEMORY_PATH", c.path)
		b := testbed.New(t, testbed.Modes()[len(testbed.Modes())-1])
		if b.Mode != verbs.Attached {
			t.Skip("there is no driver here")
		}
		if got := b.Device(t, 0).Limits().ProcessorAtomics; got != c.want {
			t.Errorf("%s: %v, want %v", c.path, got, c.want)
		}
	}
	if b := testbed.New(t, verbs.Embedded); !b.Device(t, 0).Limits().ProcessorAtomics {
		t.Error("embedded: false, want true")
	}
}

func TestSharedReceiveQueue(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		server, client := newSide(t, b, 0, verbs.RC), newSide(t, b, 1, verbs.RC)
		watcher := b.Server.Watch()
		defer watcher.Close()
		srq := must(server.pd.CreateSRQ(verbs.SRQConfig{Depth: 16, MaxSGE: 2, Limit: 2}))(t)
		server.srq = srq
		ok(t, server.qp.Close())
		server.qp = must(server.pd.CreateQP(verbs.QPConfig{SendCQ: server.cq, RecvCQ: server.cq, SRQ: srq, SendDepth: 4, Context: 77}))(t)
		wantErr(t, server.qp.PostRecv(&verbs.RecvWR{}), verbs.ErrState)
		wantErr(t, srq.PostRecv(&verbs.RecvWR{SGE: make([]verbs.SGE, 3)}), verbs.ErrInvalid)
		for i := range 3 {
			ok(t, srq.PostRecv(&verbs.RecvWR{ID: uint64(i), SGE: []verbs.SGE{server.mr.SGE(i*100, 100)}}))
		}
		connect(t, server, client)
		wantErr(t, srq.Close(), verbs.ErrBusy)
		for i := range 2 {
			client.send(t, verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{client.mr.SGE(0, 10)}})
			client.want(t, verbs.CompletedSend, verbs.Success)
			if wc := server.want(t, verbs.CompletedRecv, verbs.Success); wc.ID != uint64(i) {
				t.Errorf("receive %d was taken, want %d", wc.ID, i)
			}
		}
		if info := must(srq.Query())(t); info.Posted != 1 {
			t.Errorf("%d receives are posted, want 1", info.Posted)
		}
		for {
			e := must(watcher.Next(testbed.Context(t)))(t)
			if e.Type == verbs.EventSRQLimit {
				if e.Object != srq.Handle() {
					t.Errorf("limit event of %#x, want %#x", e.Object, srq.Handle())
				}
				break
			}
		}
		// A sender that finds no receive waits until there is one.
		client.send(t, verbs.SendWR{ID: 1, Op: verbs.OpSend})
		client.send(t, verbs.SendWR{ID: 2, Op: verbs.OpSend})
		server.want(t, verbs.CompletedRecv, verbs.Success)
		ok(t, srq.PostRecv(&verbs.RecvWR{ID: 9}))
		server.want(t, verbs.CompletedRecv, verbs.Success)
		for range 2 {
			client.want(t, verbs.CompletedSend, verbs.Success)
		}
	})
}

// An SRQ grows and shrinks while messages arrive; receives keep their order.
func TestResizeSharedReceiveQueue(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		server, client := newSide(t, b, 0, verbs.RC), newSide(t, b, 1, verbs.RC)
		srq := must(server.pd.CreateSRQ(verbs.SRQConfig{Depth: 4, MaxSGE: 2}))(t)
		server.srq = srq
		ok(t, server.qp.Close())
		server.qp = must(server.pd.CreateQP(verbs.QPConfig{SendCQ: server.cq, RecvCQ: server.cq, SRQ: srq, SendDepth: 4, Context: 77}))(t)
		connect(t, server, client)
		posted, taken := 0, 0
		post := func(n int) {
			for range n {
				ok(t, srq.PostRecv(&verbs.RecvWR{ID: uint64(posted), SGE: []verbs.SGE{server.mr.SGE(posted%64*64, 64)}}))
				posted++
			}
		}
		message := func() {
			client.mr.Bytes()[0] = byte(taken)
			client.send(t, verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{client.mr.SGE(0, 8)}})
			client.want(t, verbs.CompletedSend, verbs.Success)
			wc := server.want(t, verbs.CompletedRecv, verbs.Success)
			if at := taken % 64 * 64; wc.ID != uint64(taken) || server.mr.Bytes()[at] != byte(taken) {
				t.Fatalf("receive %d was taken, want %d with its data", wc.ID, taken)
			}
			taken++
		}
		post(4)
		message() // the ring's indexes no longer begin at zero
		post(1)
		if err := srq.PostRecv(&verbs.RecvWR{}); !verbs.IsQueueFull(err) {
			t.Fatalf("a fifth receive: %v", err)
		}
		ok(t, srq.Resize(1000))
		if d, info := srq.Depth(), must(srq.Query())(t); d < 1000 || info.Depth != d || info.Posted != 4 {
			t.Fatalf("depth is %d, state %+v; want 1000 with 4 posted", d, info)
		}
		post(500)
		ok(t, srq.Modify(300))
		wantErr(t, srq.Resize(256), verbs.ErrInvalid) // below the limit
		ok(t, srq.Modify(0))
		wantErr(t, srq.Resize(256), verbs.ErrBusy) // 504 are waiting
		wantErr(t, srq.Resize(0), verbs.ErrInvalid)
		wantErr(t, srq.Modify(1<<20), verbs.ErrInvalid)
		for taken < posted-3 {
			message()
		}
		ok(t, srq.Resize(4))
		post(1)
		for taken < posted {
			message()
		}
		for _, c := range must(server.dev.Counters())(t) {
			if c.Name == "Bad doorbells" && c.Value != 0 {
				t.Errorf("%d bad doorbells: receives posted to an SRQ are none", c.Value)
			}
		}
	})
}

func TestCQEvents(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		server, client := connected(t, b)
		var wc [4]verbs.WC
		server.recv(t, 1)
		server.recv(t, 2)
		ticket := server.cq.Arm(verbs.NotifySolicited)
		client.send(t, verbs.SendWR{Op: verbs.OpSend})
		client.want(t, verbs.CompletedSend, verbs.Success)
		for !server.cq.Pending(verbs.NotifyAny) { // polling by either side drives the server's adapter
			if _, err := client.cq.Poll(wc[:]); err != nil {
				t.Fatal(err)
			}
		}
		if server.cq.Pending(verbs.NotifySolicited) {
			t.Error("an unsolicited completion counts as solicited")
		}
		short, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		err := server.cq.Wait(short, ticket)
		wantErr(t, err, context.DeadlineExceeded)
		wantErr(t, err, verbs.ErrCanceled)
		client.send(t, verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Solicited})
		ok(t, server.cq.Wait(testbed.Context(t), ticket))
		if !server.cq.Pending(verbs.NotifySolicited) {
			t.Error("nothing solicited is there after the event")
		}
		for got := 0; got < 2; {
			n, err := server.cq.Poll(wc[:])
			ok(t, err)
			got += n
		}
		wantErr(t, server.cq.Wait(canceledContext(), server.cq.Arm(verbs.NotifyAny)), context.Canceled)
		client.want(t, verbs.CompletedSend, verbs.Success)
	})
}

// Completions are neither lost nor reordered if the CQ is resized while they arrive.
func TestResizeKeepsCompletions(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		_, client := connected(t, b)
		ok(t, client.qp.Flush())
		post := func(from, n int) {
			for i := range n {
				ok(t, client.qp.PostRecv(&verbs.RecvWR{ID: uint64(from + i)}))
			}
		}
		post(0, 20)
		wantErr(t, client.cq.Resize(8), verbs.ErrBusy) // 20 are waiting
		ok(t, client.cq.Resize(1024))
		if d := client.cq.Depth(); d < 1024 {
			t.Errorf("depth is %d, want 1024", d)
		}
		post(20, 20)
		for i := range 40 {
			if wc := client.want(t, verbs.CompletedRecv, verbs.WRFlush); wc.ID != uint64(i) {
				t.Fatalf("completion %d has ID %d", i, wc.ID)
			}
		}
		wantErr(t, client.cq.Resize(0), verbs.ErrInvalid)
		ok(t, client.cq.Resize(64))
	})
}

// A CQ that overflows is broken, and reports it (IBA 10.8.1.1).
func TestOverflowIsReported(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		server, _ := connected(t, b)
		watcher := b.Server.Watch()
		defer watcher.Close()
		cq := must(server.dev.CreateCQ(2))(t)
		qp := must(server.pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, RecvDepth: 64}))(t)
		ok(t, qp.Modify(verbs.QPAttr{State: verbs.StateInit}, verbs.MaskState|verbs.MaskPKeyIndex|verbs.MaskAccess))
		for range 8 {
			ok(t, qp.PostRecv(&verbs.RecvWR{}))
		}
		ok(t, qp.Flush())
		for {
			if e := must(watcher.Next(testbed.Context(t)))(t); e.Type == verbs.EventCQError {
				break
			}
		}
		wantErr(t, cq.Err(), verbs.ErrOverflow)
		var wc [8]verbs.WC
		if n, err := cq.Poll(wc[:]); n != 2 || err != nil {
			t.Errorf("polled %d, %v, want the 2 that fit", n, err)
		}
		_, err := cq.Poll(wc[:])
		wantErr(t, err, verbs.ErrOverflow)
		ok(t, qp.Close())
		ok(t, cq.Close())
	})
}

func TestFullQueuesRefuse(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		s := newSide(t, b, 0, verbs.RC)
		var err error
		for range 65 {
			err = s.qp.PostRecv(&verbs.RecvWR{})
		}
		wantErr(t, err, verbs.ErrQueueFull)
		if !verbs.IsQueueFull(err) {
			t.Errorf("IsQueueFull(%v) is false", err)
		}
	})
}

// A QP that has been reset has room for as many requests as a new one, less those whose completions
// have not been polled yet (IBA 10.3.1).
func TestResetGivesPlacesBack(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		s := newSide(t, b, 0, verbs.UD)
		ah := must(s.pd.CreateAH(verbs.AddressVector{Addr: b.Device(t, 1).Addr()}))(t)
		defer ah.Close()
		wr := verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, SGE: []verbs.SGE{s.mr.SGE(0, 8)}, AH: ah, RemoteQPN: 5, RemoteQKey: 1}
		for range 200 { // more often than the rings have entries
			s.ready(t, 1)
			for range 64 {
				s.recv(t, 1, s.mr.SGE(0, 64))
			}
			wantErr(t, s.qp.PostRecv(&verbs.RecvWR{}), verbs.ErrQueueFull)
			for range 10 {
				ok(t, s.qp.PostSend(&wr))
			}
			for range 10 {
				s.want(t, verbs.CompletedSend, verbs.Success)
			}
			ok(t, s.qp.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.MaskState))
		}
		s.ready(t, 1)
		for range 3 {
			s.recv(t, 1, s.mr.SGE(0, 64))
		}
		ok(t, s.qp.Flush())
		s.want(t, verbs.CompletedRecv, verbs.WRFlush) // two places are left
		ok(t, s.qp.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.MaskState))
		s.ready(t, 1)
		for range 62 {
			s.recv(t, 1, s.mr.SGE(0, 64))
		}
		wantErr(t, s.qp.PostRecv(&verbs.RecvWR{}), verbs.ErrQueueFull)
		s.want(t, verbs.CompletedRecv, verbs.WRFlush)
		s.recv(t, 1, s.mr.SGE(0, 64))
	})
}

// Requests that are in progress at a reset do not keep entries of the rings.
func TestResetUnderWay(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		x, y := newSide(t, b, 0, verbs.RC), newSide(t, b, 1, verbs.RC)
		for range 20 {
			joinByHand(t, x, y, 0)
			for range 64 { // y cannot receive yet
				x.send(t, verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{x.mr.SGE(0, 8)}})
			}
			for range 64 {
				x.recv(t, 1, x.mr.SGE(0, 64))
			}
			for _, s := range []*side{x, y} {
				ok(t, s.qp.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.MaskState))
			}
		}
	})
}

func TestWatcherEndsWithTheHost(t *testing.T) {
	h := must(verbs.Embed(verbs.Config{Adapters: testbed.Adapters(testbed.Addrs())}))(t)
	w := h.Watch()
	ok(t, h.Close())
	_, err := w.Next(testbed.Context(t))
	wantErr(t, err, verbs.ErrClosed)
	ok(t, h.Close())
	_, err = h.Devices(context.Background())
	if err == nil {
		t.Error("a closed host lists devices")
	}
}

// Receives posted before a QP is in use ring no doorbell. They are there when it is, and later ones are noticed: in
// the error state they are flushed.
func TestReceivesBeforeUse(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		s := newSide(t, b, 0, verbs.RC)
		ok(t, s.qp.Modify(verbs.QPAttr{State: verbs.StateInit}, verbs.MaskState|verbs.MaskPKeyIndex|verbs.MaskAccess))
		s.recv(t, 1)
		ok(t, s.qp.Flush())
		s.want(t, verbs.CompletedRecv, verbs.WRFlush)
		s.recv(t, 2)
		if wc := s.want(t, verbs.CompletedRecv, verbs.WRFlush); wc.ID != 2 {
			t.Errorf("receive %d was flushed, want 2", wc.ID)
		}
		server, client := newSide(t, b, 0, verbs.RC), newSide(t, b, 1, verbs.RC)
		for i := range uint64(3) {
			server.recv(t, i)
		}
		connect(t, server, client)
		server.recv(t, 3)
		for i := range uint64(4) {
			client.send(t, verbs.SendWR{Op: verbs.OpSend})
			if wc := server.want(t, verbs.CompletedRecv, verbs.Success); wc.ID != i {
				t.Errorf("receive %d was taken, want %d", wc.ID, i)
			}
			client.want(t, verbs.CompletedSend, verbs.Success)
		}
	})
}
