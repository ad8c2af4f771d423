package nd_test

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/nd"
)

// What the documentation says about the addresses of connectors and listeners.
func TestAddresses(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		ctx := testbed.Context(t)
		server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
		_, err := client.connector.GetLocalAddress()
		wantErr(t, err, nd.ErrConnectionInvalid)
		_, err = client.connector.GetPeerAddress()
		wantErr(t, err, nd.ErrConnectionInvalid)
		_, err = client.connector.GetPrivateData()
		wantErr(t, err, nd.ErrConnectionInvalid)

		wantErr(t, client.connector.Bind(netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), 0)), nd.ErrInvalidAddress)
		ok(t, client.connector.Bind(netip.AddrPortFrom(p.Addrs[1], 0))) // the refused call has left it idle
		local := must(client.connector.GetLocalAddress())(t)
		if local.Addr() != p.Addrs[1] || local.Port() == 0 {
			t.Errorf("bound to %v", local)
		}
		wantErr(t, client.connector.Bind(netip.AddrPortFrom(p.Addrs[1], 0)), nd.ErrAddressAlreadyExists)
		other := must(p.client.CreateConnector())(t)
		wantErr(t, other.Bind(local), nd.ErrSharingViolation)
		ok(t, other.Close())

		l := must(p.server.CreateListener())(t)
		defer l.Close()
		_, err = l.GetLocalAddress()
		wantErr(t, err, nd.ErrInvalidDeviceState)
		wantErr(t, l.Listen(0), nd.ErrInvalidDeviceState)
		wantErr(t, l.GetConnectionRequest(ctx, server.connector), nd.ErrInvalidDeviceState)
		wantErr(t, l.Bind(netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), 0)), nd.ErrInvalidAddress)
		ok(t, l.Bind(netip.AddrPortFrom(p.Addrs[0], 0)))
		wantErr(t, l.Bind(netip.AddrPortFrom(p.Addrs[0], 0)), nd.ErrAddressAlreadyExists)
		wantErr(t, l.Listen(-1), nd.ErrInvalidParameter)
		ok(t, l.Listen(0))
		wantErr(t, l.Listen(0), nd.ErrInvalidDeviceState)
		at := must(l.GetLocalAddress())(t)
		_, err = p.server.Listen(at, 0)
		wantErr(t, err, nd.ErrSharingViolation)
		wantErr(t, l.GetConnectionRequest(ctx, nil), nd.ErrInvalidParameter)
		wantErr(t, l.GetConnectionRequest(ctx, client.connector), nd.ErrInvalidParameter) // another adapter's

		accepted := server.accept(ctx, l, full)
		ok(t, client.connector.Connect(ctx, client.qp, at, full))
		ok(t, client.connector.CompleteConnect(ctx))
		ok(t, accepted())
		if got := must(client.connector.GetPeerAddress())(t); got != at {
			t.Errorf("the client's peer is %v, want %v", got, at)
		}
		if got := must(server.connector.GetPeerAddress())(t); got != local {
			t.Errorf("the server's peer is %v, want %v", got, local)
		}
		wantErr(t, client.connector.Connect(ctx, client.qp, at, full), nd.ErrConnectionActive)
		wantErr(t, l.GetConnectionRequest(ctx, server.connector), nd.ErrConnectionActive)
		ok(t, client.connector.Disconnect(ctx))
		wantErr(t, client.connector.Disconnect(ctx), nd.ErrConnectionInvalid)
		wantErr(t, client.connector.Connect(ctx, client.qp, at, full), nd.ErrConnectionInvalid) // used up

		ok(t, l.Close())
		wantErr(t, l.Bind(at), nd.ErrCanceled)
		wantErr(t, l.Listen(0), nd.ErrCanceled)
	})
}

// A connector whose Connect failed may try again. Private data of exactly the maximum length arrives complete, with
// the rest of the message's field zero.
func TestConnectAgainWithPrivateData(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		ctx := testbed.Context(t)
		server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
		wantErr(t, client.connector.Connect(ctx, client.qp, netip.AddrPortFrom(p.Addrs[0], 9), full), nd.ErrConnectionRefused)
		l, addr := listen(t, p.server)
		ask, answer := strings.Repeat("a", nd.MaxCallerData), strings.Repeat("b", nd.MaxCalleeData)
		var heard []byte
		accepted := later(func() error {
			if err := l.GetConnectionRequest(ctx, server.connector); err != nil {
				return err
			}
			var err error
			if heard, err = server.connector.GetPrivateData(); err != nil {
				return err
			}
			return server.connector.Accept(ctx, server.qp, nd.ConnectParams{PrivateData: []byte(answer)})
		})
		param := nd.ConnectParams{PrivateData: []byte(ask)}
		wantErr(t, client.connector.Connect(ctx, client.qp, addr, nd.ConnectParams{PrivateData: make([]byte, nd.MaxCallerData+1)}),
			nd.ErrInvalidBufferSize)
		wantErr(t, client.connector.Connect(ctx, client.qp, addr, nd.ConnectParams{InboundReadLimit: -1}), nd.ErrInvalidParameter)
		ok(t, client.connector.Connect(ctx, client.qp, addr, param))
		ok(t, client.connector.CompleteConnect(ctx))
		ok(t, accepted())
		if string(heard) != ask {
			t.Errorf("the server heard %q", heard)
		}
		if got := must(client.connector.GetPrivateData())(t); strings.TrimRight(string(got), "\x00") != answer ||
			len(got) < nd.MaxCalleeData {
			t.Errorf("the client heard %q", got)
		}
	})
}

// Every call with a context that has already ended returns ND_CANCELED and changes nothing.
func TestEndedContexts(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		server, client, accepted := answered(t, p)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		mr := must(p.client.CreateMemoryRegion())(t)
		pool := must(p.client.CreateQueuePairsPool())(t)
		defer pool.Close()
		ok(t, pool.SetLimits(1, 2))
		for name, err := range map[string]error{
			"CompleteConnect": client.connector.CompleteConnect(ended), "Register": mr.Register(ended, make([]byte, 8), 0),
			"Allocate": mr.Allocate(ended, 8, 0), "Deregister": client.mr.Deregister(ended), "Fill": pool.Fill(ended),
			"Notify": client.cq.Notify(ended, nd.NotifyAny),
		} {
			if !errors.Is(err, nd.ErrCanceled) || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want ND_CANCELED and context.Canceled", name, err)
			}
		}
		if mr.Buffer() != nil || mr.Address() != 0 || mr.GetLocalToken() != 0 || mr.GetRemoteToken() != 0 || mr.SGE(0, 8).Buffer != nil {
			t.Error("the region has memory")
		}
		ok(t, client.connector.CompleteConnect(testbed.Context(t)))
		ok(t, accepted())
		_ = server
	})
}

func TestRegions(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		ctx := testbed.Context(t)
		mr := must(p.server.CreateMemoryRegion())(t)
		wantErr(t, mr.Deregister(ctx), nd.ErrInvalidDeviceState)
		wantErr(t, mr.Register(ctx, nil, 0), nd.ErrInvalidParameter)
		wantErr(t, mr.Register(ctx, []byte{}, 0), nd.ErrInvalidBufferSize)
		wantErr(t, mr.Register(ctx, make([]byte, 8), 1<<20), nd.ErrInvalidParameter)
		for _, size := range []int{0, -1} {
			wantErr(t, mr.Allocate(ctx, size, 0), nd.ErrInvalidBufferSize)
		}
		ok(t, mr.Allocate(ctx, 100, nd.MRFlagAllowLocalWrite))
		wantErr(t, mr.Allocate(ctx, 100, 0), nd.ErrInvalidDeviceState)
		wantErr(t, mr.Register(ctx, make([]byte, 8), 0), nd.ErrInvalidDeviceState)
		for _, b := range mr.Buffer() {
			if b != 0 {
				t.Fatal("allocated memory is not zero")
			}
		}
		for _, c := range []struct{ offset, length, want int }{{0, 100, 100}, {90, 100, 10}, {-5, 10, 10}, {200, 1, 0}, {0, -1, 0}} {
			if got := len(mr.SGE(c.offset, c.length).Buffer); got != c.want {
				t.Errorf("SGE(%d, %d) has %d bytes, want %d", c.offset, c.length, got, c.want)
			}
		}
		ok(t, mr.Deregister(ctx))
		ok(t, mr.Register(ctx, make([]byte, 8), 0)) // again, with other memory
		ok(t, mr.Close())
		ok(t, mr.Close())
	})
}

// Registered Go memory is neither freed nor moved, even if the registration is its only reference.
func TestRegisteredMemoryIsKept(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		ctx := testbed.Context(t)
		server, client := newEnd(t, p.server, endConfig{}), newEnd(t, p.client, endConfig{})
		connect(t, server, client)
		freed := make(chan struct{})
		mr := must(p.server.CreateMemoryRegion())(t)
		address := func() uint64 {
			type page [1 << 16]byte
			mem := new(page)
			mem[7] = 42
			runtime.AddCleanup(mem, func(c chan struct{}) { close(c) }, freed)
			ok(t, mr.Register(ctx, mem[:], nd.MRFlagAllowRemoteRead))
			return mr.Address()
		}()
		for range 3 {
			runtime.GC()
			_ = make([]byte, 1<<20)
		}
		ok(t, client.qp.Read(1, []nd.SGE{client.mr.SGE(0, 8)}, address, mr.GetRemoteToken(), 0))
		client.want(t, nd.RequestRead, nd.StatusSuccess)
		select {
		case <-freed:
			t.Fatal("registered memory was collected")
		default:
		}
		if client.mr.Buffer()[7] != 42 {
			t.Error("the peer reads something else")
		}
		ok(t, mr.Deregister(ctx))
		await.Eventually(t, "memory that was deregistered is collected", func() bool {
			runtime.GC()
			select {
			case <-freed:
				return true
			default:
				return false
			}
		})
	})
}

func TestQueues(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		server, client := newEnd(t, p.server, endConfig{depth: 64}), newEnd(t, p.client, endConfig{depth: 64})
		srq := must(p.server.CreateSharedReceiveQueue(4, 2, 0))(t)
		defer srq.Close()
		for _, call := range []func() (uint16, uint64, error){server.cq.GetNotifyAffinity, srq.GetNotifyAffinity} {
			if group, processors, err := call(); group != 0 || processors&1 == 0 || err != nil {
				t.Errorf("affinity is %d, %#x, %v; want all processors of group 0", group, processors, err)
			}
		}
		wantErr(t, srq.Receive(1, make([]nd.SGE, 3)), nd.ErrDataOverrun)
		full := false
		for range 64 {
			if err := srq.Receive(1, nil); err != nil {
				wantErr(t, err, nd.ErrNoMoreEntries)
				full = strings.Contains(err.Error(), "SharedReceiveQueue.Receive")
				break
			}
		}
		if !full {
			t.Error("the shared queue takes any number of receives, or its error is of another queue")
		}
		_, err := server.cq.WaitResults(testbed.Context(t), nil)
		wantErr(t, err, nd.ErrInvalidParameter)

		connect(t, server, client)
		for i := range 64 {
			ok(t, server.qp.Receive(uint64(i), nil))
		}
		for i := range 64 {
			ok(t, client.qp.Send(uint64(i), nil, 0))
			client.want(t, nd.RequestSend, nd.StatusSuccess)
		}
		wantErr(t, server.cq.Resize(4), nd.ErrBufferOverflow)
		ok(t, server.cq.Resize(64)) // 64 results are waiting, and are kept
		wantErr(t, server.cq.Resize(512), nd.ErrBufferOverflow)
		for i := range 64 {
			if r := server.want(t, nd.RequestReceive, nd.StatusSuccess); r.RequestContext != uint64(i) || r.Err() != nil {
				t.Errorf("result %d after resizing is %+v", i, r)
			}
		}
		ok(t, server.cq.Resize(512))
		ok(t, client.qp.Receive(9, nil))
		ok(t, client.qp.Flush())
		r := client.want(t, nd.RequestReceive, nd.StatusCanceled)
		wantErr(t, r.Err(), nd.ErrCanceled)
		wantErr(t, client.cq.Close(), nd.ErrDeviceBusy)
	})
}

func TestProviderControlRefusesWrongUse(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		provider, other := nd.NewProvider(p.Server), nd.NewProvider(p.Server)
		called := func(netip.Addr, nd.AdapterStatus) {}
		_, err := provider.Control().RegisterForAdapterStatus(p.Addrs[0], nil)
		wantErr(t, err, nd.ErrInvalidParameter)
		_, err = provider.Control().RegisterForAdapterStatus(netip.MustParseAddr("192.0.2.1"), called)
		wantErr(t, err, nd.ErrInvalidAddress)
		r := must(provider.Control().RegisterForAdapterStatus(p.Addrs[0], called))(t)
		wantErr(t, provider.Control().DeregisterForAdapterStatus(nil), nd.ErrInvalidHandle)
		wantErr(t, other.Control().DeregisterForAdapterStatus(r), nd.ErrInvalidHandle)
		ok(t, provider.Control().DeregisterForAdapterStatus(r))
		wantErr(t, provider.Control().DeregisterForAdapterStatus(r), nd.ErrInvalidHandle)
		ok(t, provider.Close())
		_, err = provider.Control().RegisterForAdapterStatus(p.Addrs[0], called)
		wantErr(t, err, nd.ErrCanceled)
		ok(t, other.Close())
	})
}

func TestLocalAddressOfAProvider(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		provider := nd.NewProvider(p.Client)
		if got := must(provider.LocalAddress(p.Addrs[0]))(t); got == p.Addrs[0] || !got.IsLoopback() {
			t.Errorf("an adapter is reached from %v, want another one", got)
		}
		_, err := provider.LocalAddress(netip.MustParseAddr("fd00::1"))
		wantErr(t, err, nd.ErrNetworkUnreachable)
		_, err = provider.LocalAddress(netip.IPv4Unspecified())
		wantErr(t, err, nd.ErrInvalidAddress)
		ok(t, provider.Close())
	})
}

func TestNamesOfNumbers(t *testing.T) {
	for got, want := range map[string]string{
		nd.AdapterStatus(0).String():                         "up",
		nd.AdapterIsDown.String():                            "down",
		nd.AdapterRDMADisabled.String():                      "RDMA disabled",
		(nd.AdapterIsDown | nd.AdapterRDMADisabled).String(): "down, RDMA disabled",
		nd.AdapterStatus(64).String():                        "unknown status",
		nd.StatusIOTimeout.String():                          "ND_IO_TIMEOUT",
		nd.RequestBind.String():                              "Bind",
		(&nd.Result{Status: nd.StatusCanceled, RequestType: nd.RequestRead}).Err().Error(): "nd: Read: ND_CANCELED",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
