package nd_test

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/verbs"
)

func TestAdapterInfo(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		info := must(p.server.Query())(t)
		if info.Mode != p.Mode || info.Addr != p.Addrs[0] || !info.Up || info.InfoVersion != 0x20000 {
			t.Errorf("info is %+v", info)
		}
		const flags = nd.AdapterFlagInOrderDMA | nd.AdapterFlagCQInterruptModeration | nd.AdapterFlagCQResize |
			nd.AdapterFlagLoopbackConnections
		if info.Flags != flags {
			t.Errorf("flags are %#x, want %#x", info.Flags, flags)
		}
		provider := nd.NewProvider(p.Server)
		if id := must(provider.ResolveAddress(p.Addrs[0]))(t); id != info.AdapterID {
			t.Errorf("ResolveAddress gives %#x, Query %#x", id, info.AdapterID)
		}
		again := must(provider.OpenAdapter(info.AdapterID))(t)
		ok(t, again.Close())
		if local := must(provider.LocalAddress(p.Addrs[0]))(t); local != p.Addrs[1] {
			t.Errorf("LocalAddress of %v is %v, want the other adapter's", p.Addrs[0], local)
		}
		if _, err := provider.LocalAddress(p.Addrs[0].Unmap().Next().Next()); err != nil {
			t.Errorf("LocalAddress: %v", err)
		}
	})
}

func TestReadLimitsAreNegotiated(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		ctx := testbed.Context(t)
		server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
		l, addr := listen(t, p.server)
		accepted := later(func() error {
			if err := l.GetConnectionRequest(ctx, server.connector); err != nil {
				return err
			}
			if in, out, err := server.connector.GetReadLimits(); in != 3 || out != 5 || err != nil {
				t.Errorf("offered limits are %d, %d, %v, want 3, 5", in, out, err)
			}
			return server.connector.Accept(ctx, server.qp, nd.ConnectParams{InboundReadLimit: 16, OutboundReadLimit: 2})
		})
		ok(t, client.connector.Connect(ctx, client.qp, addr, nd.ConnectParams{InboundReadLimit: 5, OutboundReadLimit: 3}))
		if in, out, err := client.connector.GetReadLimits(); in != 2 || out != 3 || err != nil {
			t.Errorf("client's limits are %d, %d, %v, want 2, 3", in, out, err)
		}
		ok(t, client.connector.CompleteConnect(ctx))
		ok(t, accepted())
		if in, out, err := server.connector.GetReadLimits(); in != 3 || out != 2 || err != nil {
			t.Errorf("server's limits are %d, %d, %v, want 3, 2", in, out, err)
		}
		if peer := must(client.connector.GetPeerAddress())(t); peer != addr {
			t.Errorf("peer address is %v, want %v", peer, addr)
		}
		local := must(client.connector.GetLocalAddress())(t)
		if peer := must(server.connector.GetPeerAddress())(t); peer.Addr() != local.Addr() {
			t.Errorf("server's peer is %v, client's own address %v", peer, local)
		}
	})
}

func TestRequests(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		server := newEnd(t, p.server, endConfig{flags: nd.MRFlagAllowRemoteRead | nd.MRFlagAllowRemoteWrite})
		client := newEnd(t, p.client, endConfig{})
		connect(t, server, client)
		copy(client.mr.Buffer(), "0123456789")

		ok(t, client.qp.Write(1, []nd.SGE{client.mr.SGE(0, 10)}, server.mr.Address(), server.mr.GetRemoteToken(), nd.OpFlagSilentSuccess))
		ok(t, client.qp.Read(2, []nd.SGE{client.mr.SGE(100, 5), client.mr.SGE(200, 5)}, server.mr.Address(), server.mr.GetRemoteToken(),
			nd.OpFlagReadFence))
		if r := client.want(t, nd.RequestRead, nd.StatusSuccess); r.RequestContext != 2 {
			t.Errorf("the silent write has a result: %+v", r)
		}
		got := append(bytes.Clone(client.mr.Buffer()[100:105]), client.mr.Buffer()[200:205]...)
		if string(got) != "0123456789" {
			t.Errorf("wrote and read back %q", got)
		}
		ok(t, server.qp.Receive(3, []nd.SGE{server.mr.SGE(50, 4)}))
		ok(t, client.qp.Send(4, []nd.SGE{client.mr.SGE(0, 10)}, 0))
		server.want(t, nd.RequestReceive, nd.StatusBufferOverflow)
		client.want(t, nd.RequestSend, nd.StatusRemoteError)
	})
}

func TestNotify(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		ctx := testbed.Context(t)
		server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
		connect(t, server, client)
		for range 4 {
			ok(t, server.qp.Receive(1, nil))
		}
		told := later(func() error { return server.cq.Notify(ctx, nd.NotifySolicited) })
		ok(t, client.qp.Send(1, nil, 0))
		client.want(t, nd.RequestSend, nd.StatusSuccess)
		server.want(t, nd.RequestReceive, nd.StatusSuccess)
		ok(t, client.qp.Send(2, nil, nd.OpFlagSendAndSolicitEvent))
		ok(t, told())
		server.want(t, nd.RequestReceive, nd.StatusSuccess)
		// A solicited result that arrived before Notify, and that no GetResults has taken.
		client.want(t, nd.RequestSend, nd.StatusSuccess)
		ok(t, client.qp.Send(3, nil, nd.OpFlagSendAndSolicitEvent))
		client.want(t, nd.RequestSend, nd.StatusSuccess)
		ok(t, server.cq.Notify(ctx, nd.NotifySolicited))
		server.want(t, nd.RequestReceive, nd.StatusSuccess)
		// One event makes all waiting calls return.
		first := later(func() error { return server.cq.Notify(ctx, nd.NotifyAny) })
		second := later(func() error { return server.cq.Notify(ctx, nd.NotifyAny) })
		ok(t, client.qp.Send(4, nil, 0))
		ok(t, first())
		ok(t, second())
		// Errors satisfy every kind.
		ok(t, server.qp.Receive(1, nil))
		bad := later(func() error { return server.cq.Notify(ctx, nd.NotifyErrors) })
		ok(t, client.connector.Disconnect(ctx))
		ok(t, bad())
	})
}

// Moderation delays events until there are enough results, or the interval is over (WinOF manual 4.9.1.1.2). The
// results can be taken meanwhile.
func TestInterruptModeration(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		ctx := testbed.Context(t)
		server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
		connect(t, server, client)
		for range 5 {
			ok(t, server.qp.Receive(1, nil))
		}
		ok(t, p.server.SetCQInterruptModeration(server.cq, 3, 60*time.Millisecond))
		told := later(func() error { return server.cq.Notify(ctx, nd.NotifyAny) })
		for range 3 {
			ok(t, client.qp.Send(1, nil, 0))
			client.want(t, nd.RequestSend, nd.StatusSuccess)
		}
		ok(t, told())
		for range 3 {
			server.want(t, nd.RequestReceive, nd.StatusSuccess)
		}
		// The interval is rounded down to its limit, so that the count never decides alone.
		ok(t, p.server.SetCQInterruptModeration(server.cq, 1<<30, 24*time.Hour))
		told = later(func() error { return server.cq.Notify(ctx, nd.NotifyAny) })
		ok(t, client.qp.Send(1, nil, 0))
		ok(t, told())
		client.want(t, nd.RequestSend, nd.StatusSuccess)
		server.want(t, nd.RequestReceive, nd.StatusSuccess)
		ok(t, p.server.SetCQInterruptModeration(server.cq, 100, 2*time.Millisecond))
		told = later(func() error { return server.cq.Notify(ctx, nd.NotifyAny) })
		ok(t, client.qp.Send(1, nil, 0))
		ok(t, told())
		ok(t, p.server.SetCQInterruptModeration(server.cq, 0, 0))
	})
}

func TestSharedReceiveQueue(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		ctx := testbed.Context(t)
		server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
		srq := must(p.server.CreateSharedReceiveQueue(16, 1, 2))(t)
		ok(t, server.qp.Close())
		server.qp = must(p.server.CreateQueuePairWithSrq(srq, nd.QueuePairConfig{
			ReceiveCompletionQueue: server.cq, InitiatorCompletionQueue: server.cq, Context: server, InitiatorQueueDepth: 4,
		}))(t)
		wantErr(t, server.qp.Receive(1, nil), nd.ErrInvalidDeviceState)
		_, err := p.server.CreateQueuePairWithSrq(nil, nd.QueuePairConfig{})
		wantErr(t, err, nd.ErrInvalidParameter4)
		for i := range 3 {
			ok(t, srq.Receive(uint64(i), []nd.SGE{server.mr.SGE(100*i, 100)}))
		}
		connect(t, server, client)
		told := later(func() error { return srq.Notify(ctx) })
		for i := range 2 {
			ok(t, client.qp.Send(1, []nd.SGE{client.mr.SGE(0, 5)}, 0))
			if r := server.want(t, nd.RequestReceive, nd.StatusSuccess); r.RequestContext != uint64(i) || r.BytesTransferred != 5 {
				t.Errorf("result is %+v, want receive %d of 5 bytes", r, i)
			}
		}
		ok(t, told()) // fewer than 2 are left
		ok(t, srq.Notify(ctx))
		ok(t, srq.Modify(0, 1))
		wantErr(t, srq.Modify(0, 1<<20), nd.ErrInvalidParameter)
		wantErr(t, srq.Modify(1<<30, 0), nd.ErrInvalidParameter)
		// It grows while a receive is posted and a Notify is waiting.
		told = later(func() error { return srq.Notify(ctx) })
		ok(t, srq.Modify(100, 0))
		for i := 3; i <= 100; i++ {
			ok(t, srq.Receive(uint64(i), []nd.SGE{server.mr.SGE(i, 8)}))
		}
		wantErr(t, srq.Modify(50, 0), nd.ErrBufferOverflow)
		for i := 2; i <= 100; i++ {
			ok(t, client.qp.Send(1, []nd.SGE{client.mr.SGE(0, 5)}, 0))
			if r := server.want(t, nd.RequestReceive, nd.StatusSuccess); r.RequestContext != uint64(i) {
				t.Fatalf("receive %d was taken, want %d", r.RequestContext, i)
			}
			client.want(t, nd.RequestSend, nd.StatusSuccess)
		}
		ok(t, told())
		ok(t, srq.Modify(4, 4))
		wantErr(t, srq.Modify(2, 0), nd.ErrInvalidParameter) // the threshold is 4
		wantErr(t, srq.Close(), nd.ErrDeviceBusy)
		ok(t, server.connector.Close())
		ok(t, server.qp.Close())
		ok(t, srq.Close())
	})
}

func TestQueuePairsPool(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		ctx := testbed.Context(t)
		pool := must(p.server.CreateQueuePairsPool())(t)
		_, _, _, err := pool.CreateObjects(nil)
		wantErr(t, err, nd.ErrInvalidDeviceState) // no parameters yet
		ok(t, pool.SetQueuePairParams(nd.QueuePairParams{ReceiveQueueDepth: 4, InitiatorQueueDepth: 4}))
		ok(t, pool.SetCompletionQueueParams(nd.CompletionQueueParams{ReceiveDepth: 8, InitiatorDepth: 8}))
		wantErr(t, pool.SetQueuePairParams(nd.QueuePairParams{ReceiveQueueDepth: -1}), nd.ErrInvalidParameter5)
		wantErr(t, pool.SetCompletionQueueParams(nd.CompletionQueueParams{}), nd.ErrInvalidParameter)
		wantErr(t, pool.SetLimits(5, 2), nd.ErrInvalidParameter)
		ok(t, pool.SetLimits(3, 5))
		ok(t, pool.Fill(ctx))
		if s := pool.Statistics(); s.Available != 5 || s.Created != 5 {
			t.Fatalf("statistics are %+v, want 5 available", s)
		}
		for range 4 { // below the low limit, so the pool fills up in the background
			qp, receive, initiator, err := pool.CreateObjects("mine")
			ok(t, err)
			if receive == initiator || qp.Context() != "mine" {
				t.Error("the pool's objects are not as asked for")
			}
			ok(t, qp.Receive(1, nil))
			ok(t, qp.Flush())
			var r [1]nd.Result
			if _, err := receive.WaitResults(ctx, r[:]); err != nil || r[0].QueuePairContext != "mine" {
				t.Errorf("result is %+v, %v", r[0], err)
			}
			ok(t, qp.Close())
			ok(t, receive.Close())
			ok(t, initiator.Close())
		}
		await.Eventually(t, "the pool is full", func() bool { return pool.Statistics().Available >= 5 })
		s := pool.Statistics()
		if s.Hits != 4 || s.Misses != 1 || s.BackgroundFills == 0 || s.LastError != nil {
			t.Errorf("statistics are %+v, want 4 hits, 1 miss and background fills", s)
		}
		ok(t, pool.Close())
		_, _, _, err = pool.CreateObjects(nil)
		wantErr(t, err, nd.ErrCanceled)
	})
}

// Disabling the adapter while programs run does what WinOF manual 4.11.2 says, and programs that registered for it
// are notified (4.11.1).
func TestDisablingTheAdapter(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		ctx := testbed.Context(t)
		server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
		connect(t, server, client)
		l, _ := listen(t, p.server)
		control := nd.NewProvider(p.Server).Control()
		states := make(chan nd.AdapterStatus, 8)
		registration := must(control.RegisterForAdapterStatus(p.Addrs[0], func(_ netip.Addr, s nd.AdapterStatus) { states <- s }))(t)
		ok(t, server.qp.Receive(1, nil))
		ok(t, server.qp.Receive(2, nil))
		idle := must(p.server.CreateConnector())(t)
		waiting := map[string]func() error{
			"GetConnectionRequest": later(func() error { return l.GetConnectionRequest(ctx, idle) }),
			"NotifyDisconnect":     later(func() error { return server.connector.NotifyDisconnect(ctx) }),
		}
		ok(t, p.SetEnabled(0, false))

		// Waiting requests are canceled.
		if err := waiting["GetConnectionRequest"](); !errors.Is(err, nd.ErrCanceled) && !errors.Is(err, nd.ErrDeviceRemoved) {
			t.Errorf("GetConnectionRequest: %v, want ND_CANCELED or ND_DEVICE_REMOVED", err)
		}
		if err := waiting["NotifyDisconnect"](); err != nil && !errors.Is(err, nd.ErrCanceled) && !errors.Is(err, nd.ErrDeviceRemoved) {
			t.Errorf("NotifyDisconnect: %v", err)
		}
		// Posted requests are flushed.
		var r [4]nd.Result
		flushed := 0
		for flushed < 2 && ctx.Err() == nil {
			n, err := server.cq.GetResults(r[flushed:])
			ok(t, err)
			flushed += n
		}
		for _, r := range r[:flushed] {
			if r.Status != nd.StatusCanceled {
				t.Errorf("result is %v, want ND_CANCELED", r.Status)
			}
		}
		// The program is told, and from then on new requests fail explicitly.
		if s := <-states; s&nd.AdapterIsDown == 0 {
			t.Errorf("status is %v, want down", s)
		}
		_, err := p.server.CreateCompletionQueue(4)
		wantErr(t, err, nd.ErrDeviceRemoved)
		wantErr(t, server.cq.Notify(ctx, nd.NotifyAny), nd.ErrDeviceRemoved)
		wantErr(t, server.qp.Receive(3, nil), nd.ErrDeviceRemoved)
		wantErr(t, server.qp.Send(4, nil, 0), nd.ErrDeviceRemoved)
		_, err = p.server.CreateListener()
		wantErr(t, err, nd.ErrDeviceRemoved)
		_, err = server.cq.GetResults(r[:])
		wantErr(t, err, nd.ErrDeviceRemoved)
		ok(t, p.SetEnabled(0, true))
		if s := <-states; s != 0 {
			t.Errorf("status is %v, want up", s)
		}
		ok(t, control.DeregisterForAdapterStatus(registration))
		wantErr(t, control.DeregisterForAdapterStatus(registration), nd.ErrInvalidHandle)
		// It works again for objects created afterwards.
		again := must(nd.NewProvider(p.Server).OpenAdapterAt(p.Addrs[0]))(t)
		e := newEnd(t, again, endConfig{})
		other := newEnd(t, p.client, endConfig{})
		connect(t, e, other)
	})
}

func TestPostingAllocatesNothing(t *testing.T) {
	p := newPlace(t, testbed.New(t, verbs.Embedded))
	server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
	connect(t, server, client)
	var results [8]nd.Result
	take := func(e *end) {
		for {
			n, err := e.cq.GetResults(results[:])
			ok(t, err)
			if n > 0 {
				return
			}
		}
	}
	one := func() {
		ok(t, server.qp.Receive(1, []nd.SGE{server.mr.SGE(0, 64)}))
		ok(t, client.qp.Send(2, []nd.SGE{client.mr.SGE(0, 64)}, 0))
		take(server)
		take(client)
	}
	one()
	if n := testing.AllocsPerRun(300, one); n > 0 {
		t.Errorf("a send and a receive allocate %v times", n)
	}
}

func TestContextOfClosedQueuePairs(t *testing.T) {
	p := newPlace(t, testbed.New(t, verbs.Embedded))
	e := newEnd(t, p.server, endConfig{})
	qp := must(p.server.CreateQueuePair(nd.QueuePairConfig{ReceiveCompletionQueue: e.cq, InitiatorCompletionQueue: e.cq, Context: "old",
		ReceiveQueueDepth: 1}))(t)
	ok(t, qp.Receive(1, nil))
	ok(t, qp.Flush())
	ok(t, qp.Close())
	next := must(p.server.CreateQueuePair(nd.QueuePairConfig{ReceiveCompletionQueue: e.cq, InitiatorCompletionQueue: e.cq, Context: "new",
		ReceiveQueueDepth: 1}))(t)
	defer next.Close()
	var r [2]nd.Result
	n, err := e.cq.GetResults(r[:])
	ok(t, err)
	for _, r := range r[:n] {
		if r.QueuePairContext != nil {
			t.Errorf("a result of a closed queue pair has the context %v", r.QueuePairContext)
		}
	}
}
