package verbs_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// xrcEnds is an initiator that has reached a listener's target.
type xrcEnds struct {
	initiator, target *verbs.QP
	active, passive   *verbs.ID
}

// meetXRC connects by the connection manager. The answer's private data are the numbers of the receiver's queues.
func meetXRC(t testing.TB, l *verbs.Listener, here *verbs.Device, sender, receiver *xrcReceiver) (e xrcEnds) {
	t.Helper()
	ctx := testbed.Context(t)
	e.initiator = must(sender.pd.CreateQP(verbs.QPConfig{Type: verbs.XRCInitiator, SendCQ: sender.cq, SendDepth: 16}))(t)
	e.active = must(here.NewXRCID())(t)
	failed := make(chan error, 1)
	go func() {
		err := e.active.Connect(ctx, l.Addr(), e.initiator, verbs.ConnParam{InitiatorDepth: 4, ResponderResources: 4, Private: []byte("hello")})
		if err == nil {
			err = e.active.Establish()
		}
		failed <- err
	}()
	e.passive = must(l.Request(ctx))(t)
	if p := e.passive.Peer(); string(p.Private[:5]) != "hello" || p.QPN != e.initiator.Number() || p.FlowControl || p.InitiatorDepth != 0 {
		t.Errorf("the request says %+v, want the initiator's number, no reads of the target's and no credits", p)
	}
	e.target = must(receiver.domain.CreateTarget(5))(t)
	number := binary.BigEndian.AppendUint32(nil, receiver.srq.Number())
	ok(t, e.passive.Accept(ctx, e.target, verbs.ConnParam{InitiatorDepth: 4, ResponderResources: 3, Private: number}))
	ok(t, <-failed)
	p := e.active.Peer()
	if binary.BigEndian.Uint32(p.Private) != receiver.srq.Number() || p.QPN != e.target.Number() || !p.SRQ || p.FlowControl {
		t.Errorf("the answer says %+v, want the numbers of target and queue, which is shared, and no credits", p)
	}
	return e
}

// xrcSides returns a sender and a receiver, each in a domain of its own, on the adapter of its side.
func xrcSides(t testing.TB, b *testbed.Bed) (here, there *verbs.Device, sender, receiver *xrcReceiver) {
	t.Helper()
	here, there = b.Device(t, 1), b.Device(t, 0)
	sender = newXRCReceiver(t, here, must(here.OpenXRCDomain(verbs.XRCDomainConfig{}))(t))
	receiver = newXRCReceiver(t, there, must(there.OpenXRCDomain(verbs.XRCDomainConfig{}))(t))
	return here, there, sender, receiver
}

// closeXRC closes the sides of a test with their domains.
func closeXRC(t testing.TB, sides ...*xrcReceiver) {
	t.Helper()
	for _, r := range sides {
		r.close(t)
		ok(t, r.domain.Close())
	}
}

// post sends a message to a queue, which arrives.
func (e *xrcEnds) post(t testing.TB, sender, receiver *xrcReceiver, text string) {
	t.Helper()
	receiver.post(t, 9)
	n := copy(sender.mr.Bytes(), text)
	ok(t, e.initiator.PostSend(&verbs.SendWR{
		Op: verbs.OpSend, Flags: verbs.Signaled, RemoteSRQ: receiver.srq.Number(), SGE: []verbs.SGE{sender.mr.SGE(0, n)},
	}))
	if wc := nextOf(t, sender.cq); wc.Status != verbs.Success {
		t.Fatalf("send ends with %v", wc.Status)
	}
	if wc := nextOf(t, receiver.cq); wc.Status != verbs.Success || wc.QPN != e.target.Number() {
		t.Fatalf("receive ends with %+v", wc)
	}
	if got := string(receiver.mr.Bytes()[:n]); got != text {
		t.Errorf("received %q, want %q", got, text)
	}
}

// The connection manager connects an initiator with a target, and ends the connection for both (IBA annex A14).
func TestXRCConnect(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		here, there, sender, receiver := xrcSides(t, b)
		l := must(there.ListenXRC(netip.AddrPortFrom(there.Addr(), 0), 0))(t)
		for range 2 {
			e := meetXRC(t, l, here, sender, receiver)
			e.post(t, sender, receiver, "message")
			ok(t, e.active.Disconnect(testbed.Context(t)))
			<-e.passive.Disconnected()
			for _, q := range []*verbs.QP{e.initiator, e.target} {
				if attr, err := q.Query(); err != nil || attr.State != verbs.StateError {
					t.Errorf("after the connection: %v, %v, want the error state", attr.State, err)
				}
				ok(t, q.Close())
			}
			ok(t, e.active.Close())
			ok(t, e.passive.Close())
		}
		ok(t, l.Close())
		closeXRC(t, sender, receiver)
	})
}

// Ids of XRC are for XRC: other queue pairs are refused on either side, and listeners for other services do not hear of them.
func TestXRCConnectRefused(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		ctx := testbed.Context(t)
		here, there, sender, receiver := xrcSides(t, b)
		initiator := must(sender.pd.CreateQP(verbs.QPConfig{Type: verbs.XRCInitiator, SendCQ: sender.cq, SendDepth: 16}))(t)
		target := must(receiver.domain.CreateTarget(5))(t)
		plain := must(sender.pd.CreateQP(verbs.QPConfig{SendCQ: sender.cq, RecvCQ: sender.cq}))(t)
		l := must(there.ListenXRC(netip.AddrPortFrom(there.Addr(), 0), 0))(t)
		usual := must(there.Listen(netip.AddrPortFrom(there.Addr(), 0), 0))(t)

		// Ports of the two port spaces are apart.
		var rejected *verbs.RejectedError
		id := must(here.NewXRCID())(t)
		if err := id.Connect(ctx, usual.Addr(), initiator, param); !errors.As(err, &rejected) || rejected.Reason != 8 {
			t.Errorf("connecting XRC to a listener for reliable connections: %v, want reason 8, no such service", err)
		}
		ok(t, id.Close())
		for _, c := range []struct {
			what  string
			newID func() (*verbs.ID, error)
			qp    *verbs.QP
		}{
			{"RC by an XRC id", here.NewXRCID, plain}, {"an initiator by an id for RC", here.NewID, initiator},
			{"a target by an XRC id", there.NewXRCID, target},
		} {
			id := must(c.newID())(t)
			if err := id.Connect(ctx, l.Addr(), c.qp, param); !errors.Is(err, verbs.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", c.what, err)
			}
			ok(t, id.Close())
		}

		// A request for a target is not answered by an RC queue pair, but still by a target. The program may bring it up itself.
		id = must(here.NewXRCID())(t)
		done := make(chan error, 1)
		go func() { done <- id.Connect(ctx, l.Addr(), initiator, param) }()
		r := must(l.Request(ctx))(t)
		serving := must(receiver.pd.CreateQP(verbs.QPConfig{SendCQ: receiver.cq, RecvCQ: receiver.cq}))(t)
		wantErr(t, r.Accept(ctx, serving, param), verbs.ErrInvalid)
		attr, mask, err := r.Attributes(verbs.StateRTS)
		if err != nil || mask&verbs.MaskTimeout == 0 || mask&(verbs.MaskRetry|verbs.MaskRNRRetry|verbs.MaskInitiatorDepth) != 0 {
			t.Errorf("a target's way to RTS: %+v, mask %#x, %v", attr, mask, err)
		}
		accepting, stop := context.WithCancel(ctx)
		accepted := make(chan error, 1)
		go func() { accepted <- r.Accept(accepting, target, param) }()
		ok(t, <-done)
		ok(t, id.Establish())
		ok(t, <-accepted)
		stop()
		for _, c := range []interface{ Close() error }{id, r, l, usual, initiator, target, plain, serving} {
			ok(t, c.Close())
		}
		closeXRC(t, sender, receiver)
	})
}

// The queue pair of a connection may be brought up by the programs themselves, on both sides.
func TestXRCConnectByHand(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		ctx := testbed.Context(t)
		here, there, sender, receiver := xrcSides(t, b)
		e := xrcEnds{
			initiator: must(sender.pd.CreateQP(verbs.QPConfig{Type: verbs.XRCInitiator, SendCQ: sender.cq, SendDepth: 16}))(t),
			target:    must(receiver.domain.CreateTarget(5))(t),
		}
		bring := func(id *verbs.ID, q *verbs.QP) {
			t.Helper()
			for _, s := range []verbs.QPState{verbs.StateInit, verbs.StateRTR, verbs.StateRTS} {
				attr, mask, err := id.Attributes(s)
				ok(t, err)
				ok(t, q.Modify(attr, mask))
			}
		}
		l := must(there.ListenXRC(netip.AddrPortFrom(there.Addr(), 0), 0))(t)
		id := must(here.NewXRCID())(t)
		done := make(chan error, 1)
		byHand := func(q *verbs.QP) verbs.ConnParam { p := param; p.QPN = q.Number(); return p }
		go func() { done <- id.Connect(ctx, l.Addr(), nil, byHand(e.initiator)) }()
		r := must(l.Request(ctx))(t)
		bring(r, e.target)
		accepted := make(chan error, 1)
		go func() { accepted <- r.Accept(ctx, nil, byHand(e.target)) }()
		ok(t, <-done)
		bring(id, e.initiator)
		ok(t, id.Establish())
		ok(t, <-accepted)
		e.post(t, sender, receiver, "by hand")
		for _, c := range []interface{ Close() error }{id, r, l, e.initiator, e.target} {
			ok(t, c.Close())
		}
		closeXRC(t, sender, receiver)
	})
}
