package nd_test

import (
	"context"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/nd"
)

// TestNdmemorytest runs the cases of the public ndmemorytest, under its names: what goes wrong between two programs
// must end, at both, in the status that it expects.
func TestNdmemorytest(t *testing.T) {
	cases := []struct {
		name string
		run  func(*testing.T, *place)
	}{
		{"NdConnClose", connClose},
		{"NdConnListenClosing", connListenClosing},
		{"NdConnReject", connReject},
		{"NdDualConnection", dualConnection},
		{"NdDualListen", dualListen},
		{"NdInvalidIP", invalidIP},
		{"NdInvalidRead", invalidRead},
		{"NdInvalidWrite", invalidWrite},
		{"NdLargePrivateData", largePrivateData},
		{"NdLargeQPDepth", largeQPDepth},
		{"NdMRDeregister", mrDeregister},
		{"NdMRInvalidBuffer", mrInvalidBuffer},
		{"NdOverRead", overRead},
		{"NdOverWrite", overWrite},
		{"NdQpMax", qpMax},
		{"NdReceiveFlushQP", receiveFlushQP},
		{"NdSendNoReceive", sendNoReceive},
		{"NdReceiveConnClosed", receiveConnClosed},
		{"NdWriteViolation", writeViolation},
	}
	each(t, func(t *testing.T, p *place) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.run(t, p) })
		}
	})
}

// answered connects client up to the return of Connect, while the server's Accept still waits.
func answered(t *testing.T, p *place) (server, client *end, accepted func() error) {
	ctx := testbed.Context(t)
	server, client = newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
	l, addr := listen(t, p.server)
	accepted = server.accept(ctx, l, full)
	ok(t, client.connector.Connect(ctx, client.qp, addr, full))
	return server, client, accepted
}

func connClose(t *testing.T, p *place) {
	_, client, accepted := answered(t, p)
	ok(t, client.connector.Close())
	wantErr(t, accepted(), nd.ErrConnectionRefused)
}

func connReject(t *testing.T, p *place) {
	_, client, accepted := answered(t, p)
	ok(t, client.connector.Reject(nil))
	wantErr(t, accepted(), nd.ErrConnectionRefused)
}

func connListenClosing(t *testing.T, p *place) {
	client := newEnd(t, p.client, endConfig{})
	l, addr := listen(t, p.server)
	ok(t, l.Close())
	err := client.connector.Connect(testbed.Context(t), client.qp, addr, full)
	wantErr(t, err, nd.ErrConnectionRefused)
}

func dualConnection(t *testing.T, p *place) {
	ctx := testbed.Context(t)
	_, client, accepted := answered(t, p)
	local := must(client.connector.GetLocalAddress())(t)
	wantErr(t, client.connector.Bind(local), nd.ErrAddressAlreadyExists)
	remote := must(client.connector.GetPeerAddress())(t)
	wantErr(t, client.connector.Connect(ctx, client.qp, remote, full), nd.ErrConnectionActive)
	other := must(p.client.CreateConnector())(t)
	wantErr(t, other.Connect(ctx, client.qp, remote, full), nd.ErrConnectionActive)
	ok(t, client.connector.Close())
	wantErr(t, accepted(), nd.ErrConnectionRefused)
}

func dualListen(t *testing.T, p *place) {
	l, addr := listen(t, p.server)
	second := must(p.server.CreateListener())(t)
	defer second.Close()
	wantErr(t, second.Bind(addr), nd.ErrSharingViolation)
	wantErr(t, l.Bind(addr), nd.ErrAddressAlreadyExists)
	wantErr(t, l.Listen(0), nd.ErrInvalidDeviceState)
}

func invalidIP(t *testing.T, p *place) {
	client := newEnd(t, p.client, endConfig{})
	for _, addr := range []netip.AddrPort{
		{},
		netip.AddrPortFrom(netip.IPv4Unspecified(), 54325),
		netip.AddrPortFrom(netip.MustParseAddr("224.0.0.1"), 54325),
	} {
		wantErr(t, client.connector.Connect(testbed.Context(t), client.qp, addr, full), nd.ErrInvalidAddress)
	}
}

// window connects two ends. The client binds a window to all of its memory and sends the server the window's address,
// which the server receives.
func window(t *testing.T, p *place, serverSize int, flags nd.OpFlags) (server, client *end, w *nd.MemoryWindow, addr uint64, token uint32) {
	server = newEnd(t, p.server, endConfig{size: serverSize})
	client = newEnd(t, p.client, endConfig{flags: nd.MRFlagAllowRemoteRead | nd.MRFlagAllowRemoteWrite})
	connect(t, server, client)
	w = must(p.client.CreateMemoryWindow())(t)
	t.Cleanup(func() { ok(t, w.Close()) })
	ok(t, server.qp.Receive(1, []nd.SGE{server.mr.SGE(0, 12)}))
	ok(t, client.qp.Receive(2, nil)) // reports the end of the connection
	ok(t, client.qp.Bind(3, client.mr, w, client.mr.Buffer(), flags))
	client.want(t, nd.RequestBind, nd.StatusSuccess)
	buf := client.mr.Buffer()
	binary.LittleEndian.PutUint64(buf, client.mr.Address())
	binary.LittleEndian.PutUint32(buf[8:], w.GetRemoteToken())
	ok(t, client.qp.Send(4, []nd.SGE{client.mr.SGE(0, 12)}, 0))
	client.want(t, nd.RequestSend, nd.StatusSuccess)
	server.want(t, nd.RequestReceive, nd.StatusSuccess)
	got := server.mr.Buffer()
	return server, client, w, binary.LittleEndian.Uint64(got), binary.LittleEndian.Uint32(got[8:])
}

const readWrite = nd.OpFlagAllowRead | nd.OpFlagAllowWrite

func invalidRead(t *testing.T, p *place) {
	server, client, w, addr, token := window(t, p, maxTransfer, readWrite)
	ok(t, client.qp.Invalidate(5, w, 0))
	client.want(t, nd.RequestInvalidate, nd.StatusSuccess)
	ok(t, server.qp.Read(6, []nd.SGE{server.mr.SGE(0, 64)}, addr, token, 0))
	server.want(t, nd.RequestRead, nd.StatusAccessViolation)
	client.want(t, nd.RequestReceive, nd.StatusCanceled)
}

func invalidWrite(t *testing.T, p *place) {
	server, client, w, addr, token := window(t, p, maxTransfer, readWrite)
	ok(t, client.qp.Invalidate(5, w, 0))
	client.want(t, nd.RequestInvalidate, nd.StatusSuccess)
	ok(t, server.qp.Write(6, []nd.SGE{server.mr.SGE(0, 64)}, addr, token, 0))
	server.want(t, nd.RequestWrite, nd.StatusAccessViolation)
	client.want(t, nd.RequestReceive, nd.StatusCanceled)
}

func overRead(t *testing.T, p *place) {
	server, client, _, addr, token := window(t, p, maxTransfer+1, readWrite)
	ok(t, server.qp.Read(6, []nd.SGE{server.mr.SGE(0, maxTransfer+1)}, addr, token, 0))
	server.want(t, nd.RequestRead, nd.StatusAccessViolation)
	client.want(t, nd.RequestReceive, nd.StatusCanceled)
}

func overWrite(t *testing.T, p *place) {
	server, client, _, addr, token := window(t, p, maxTransfer+1, readWrite)
	before := client.mr.Buffer()[maxTransfer-1]
	ok(t, server.qp.Write(6, []nd.SGE{server.mr.SGE(0, maxTransfer+1)}, addr, token, 0))
	server.want(t, nd.RequestWrite, nd.StatusAccessViolation)
	client.want(t, nd.RequestReceive, nd.StatusCanceled)
	if got := client.mr.Buffer()[maxTransfer-1]; got != before {
		t.Errorf("the write that was refused changed memory: %#x, was %#x", got, before)
	}
}

func writeViolation(t *testing.T, p *place) {
	server, client, _, addr, token := window(t, p, maxTransfer, nd.OpFlagAllowRead)
	ok(t, server.qp.Read(5, []nd.SGE{server.mr.SGE(0, 64)}, addr, token, 0))
	server.want(t, nd.RequestRead, nd.StatusSuccess)
	ok(t, server.qp.Write(6, []nd.SGE{server.mr.SGE(0, 64)}, addr, token, 0))
	server.want(t, nd.RequestWrite, nd.StatusAccessViolation)
	client.want(t, nd.RequestReceive, nd.StatusCanceled)
}

func largePrivateData(t *testing.T, p *place) {
	ctx := testbed.Context(t)
	server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
	info := must(p.client.Query())(t)
	if info.MaxCallerData != 56 || info.MaxCalleeData != 148 {
		t.Fatalf("MaxCallerData, MaxCalleeData are %d, %d, want 56, 148", info.MaxCallerData, info.MaxCalleeData)
	}
	data := func(n int, seed byte) nd.ConnectParams {
		b := make([]byte, n)
		for i := range b {
			b[i] = seed + byte(i)
		}
		return nd.ConnectParams{PrivateData: b}
	}
	l, addr := listen(t, p.server)
	err := client.connector.Connect(ctx, client.qp, addr, data(info.MaxCallerData+1, 1))
	wantErr(t, err, nd.ErrInvalidBufferSize)
	accepted := later(func() error {
		if err := l.GetConnectionRequest(ctx, server.connector); err != nil {
			return err
		}
		got, err := server.connector.GetPrivateData()
		if err != nil || string(got) != string(data(56, 1).PrivateData) {
			t.Errorf("private data of the request is %x, %v", got, err)
		}
		err = server.connector.Accept(ctx, server.qp, data(info.MaxCalleeData+1, 9))
		wantErr(t, err, nd.ErrInvalidBufferSize)
		return server.connector.Accept(ctx, server.qp, data(info.MaxCalleeData, 9))
	})
	ok(t, server.qp.Receive(1, nil))
	ok(t, client.connector.Connect(ctx, client.qp, addr, data(info.MaxCallerData, 1)))
	got := must(client.connector.GetPrivateData())(t)
	if len(got) < 148 || string(got[:148]) != string(data(148, 9).PrivateData) {
		t.Errorf("private data of the answer is %x", got)
	}
	ok(t, client.connector.CompleteConnect(ctx))
	ok(t, accepted())
	ok(t, client.qp.Send(2, nil, 0))
	client.want(t, nd.RequestSend, nd.StatusSuccess)
	server.want(t, nd.RequestReceive, nd.StatusSuccess)

	rejecter := must(p.server.CreateConnector())(t)
	wantErr(t, rejecter.Reject(make([]byte, 149)), nd.ErrInvalidBufferSize)
}

func largeQPDepth(t *testing.T, p *place) {
	info := must(p.server.Query())(t)
	cq := must(p.server.CreateCompletionQueue(2))(t)
	defer cq.Close()
	base := nd.QueuePairConfig{ReceiveCompletionQueue: cq, InitiatorCompletionQueue: cq, ReceiveQueueDepth: 1, InitiatorQueueDepth: 1}
	for _, c := range []struct {
		name   string
		change func(*nd.QueuePairConfig)
		want   error
	}{
		{"receive queue", func(c *nd.QueuePairConfig) { c.ReceiveCompletionQueue = nil }, nd.ErrInvalidParameter2},
		{"initiator queue", func(c *nd.QueuePairConfig) { c.InitiatorCompletionQueue = nil }, nd.ErrInvalidParameter3},
		{"receive depth", func(c *nd.QueuePairConfig) { c.ReceiveQueueDepth = info.MaxReceiveQueueDepth + 1 }, nd.ErrInvalidParameter5},
		{"initiator depth", func(c *nd.QueuePairConfig) { c.InitiatorQueueDepth = info.MaxInitiatorQueueDepth + 1 },
			nd.ErrInvalidParameter6},
		{"receive SGE", func(c *nd.QueuePairConfig) { c.MaxReceiveRequestSGE = info.MaxReceiveSGE + 1 }, nd.ErrInvalidParameter7},
		{"initiator SGE", func(c *nd.QueuePairConfig) { c.MaxInitiatorRequestSGE = info.MaxInitiatorSGE + 1 }, nd.ErrInvalidParameter8},
		{"inline", func(c *nd.QueuePairConfig) { c.InlineDataSize = info.MaxInlineDataSize + 1 }, nd.ErrInvalidParameter9},
		{"negative", func(c *nd.QueuePairConfig) { c.ReceiveQueueDepth = -1 }, nd.ErrInvalidParameter5},
	} {
		config := base
		c.change(&config)
		if _, err := p.server.CreateQueuePair(config); nd.StatusOf(err) != nd.StatusOf(c.want) {
			t.Errorf("%s: error is %v, want %v", c.name, err, c.want)
		}
	}
}

func qpMax(t *testing.T, p *place) {
	info := must(p.server.Query())(t)
	cq := must(p.server.CreateCompletionQueue(2))(t)
	qp := must(p.server.CreateQueuePair(nd.QueuePairConfig{
		ReceiveCompletionQueue: cq, InitiatorCompletionQueue: cq,
		ReceiveQueueDepth: info.MaxReceiveQueueDepth, InitiatorQueueDepth: info.MaxInitiatorQueueDepth,
		MaxReceiveRequestSGE: info.MaxReceiveSGE, MaxInitiatorRequestSGE: info.MaxInitiatorSGE,
		InlineDataSize: info.MaxInlineDataSize,
	}))(t)
	ok(t, qp.Close())
	ok(t, cq.Close())
}

func mrDeregister(t *testing.T, p *place) {
	ctx := testbed.Context(t)
	_, client, w, _, _ := window(t, p, maxTransfer, nd.OpFlagAllowRead)
	wantErr(t, client.mr.Deregister(ctx), nd.ErrDeviceBusy)
	ok(t, client.qp.Invalidate(5, w, 0))
	client.want(t, nd.RequestInvalidate, nd.StatusSuccess)
	ok(t, client.mr.Deregister(ctx))
	wantErr(t, client.mr.Deregister(ctx), nd.ErrInvalidDeviceState)
}

func mrInvalidBuffer(t *testing.T, p *place) {
	ctx := testbed.Context(t)
	mr := must(p.server.CreateMemoryRegion())(t)
	wantErr(t, mr.Register(ctx, nil, nd.MRFlagAllowLocalWrite), nd.ErrInvalidParameter)
	wantErr(t, mr.Register(ctx, make([]byte, 0, 10), nd.MRFlagAllowLocalWrite), nd.ErrInvalidBufferSize)
	wantErr(t, mr.Register(ctx, make([]byte, 10), 0x40), nd.ErrInvalidParameter)
	wantErr(t, mr.Allocate(ctx, 0, nd.MRFlagAllowLocalWrite), nd.ErrInvalidBufferSize)
	wantErr(t, mr.Allocate(ctx, -1, nd.MRFlagAllowLocalWrite), nd.ErrInvalidBufferSize)
	if mr.Buffer() != nil || mr.GetLocalToken() != 0 || mr.GetRemoteToken() != 0 {
		t.Error("a region without memory has a buffer or tokens")
	}
}

func receiveFlushQP(t *testing.T, p *place) {
	e := newEnd(t, p.server, endConfig{})
	ok(t, e.qp.Receive(1, nil))
	ok(t, e.qp.Receive(2, nil))
	ok(t, e.qp.Flush())
	ok(t, e.cq.Notify(testbed.Context(t), nd.NotifyAny))
	for _, want := range []uint64{1, 2} {
		if r := e.want(t, nd.RequestReceive, nd.StatusCanceled); r.RequestContext != want {
			t.Errorf("request context is %d, want %d", r.RequestContext, want)
		}
	}
}

func sendNoReceive(t *testing.T, p *place) {
	server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
	connect(t, server, client)
	ok(t, client.qp.Send(1, []nd.SGE{client.mr.SGE(0, maxTransfer)}, 0))
	client.want(t, nd.RequestSend, nd.StatusIOTimeout)
	var r [1]nd.Result
	if n, err := server.cq.GetResults(r[:]); n != 0 || err != nil {
		t.Errorf("the receiver has %d results, %v, want none", n, err)
	}
}

func receiveConnClosed(t *testing.T, p *place) {
	server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
	ok(t, server.qp.Receive(1, []nd.SGE{server.mr.SGE(0, maxTransfer)}))
	connect(t, server, client)
	told := later(func() error { return server.connector.NotifyDisconnect(context.Background()) })
	ok(t, client.connector.Close())
	server.want(t, nd.RequestReceive, nd.StatusCanceled)
	ok(t, told())
}
