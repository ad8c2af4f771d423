package nd_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/verbs"
)

// openTwo opens two embedded adapters at free addresses. A real program would
// use the adapters it finds: nd.Open(ctx, nd.Options{}).
func openTwo() (provider *nd.Provider, first, second *nd.Adapter) {
	addrs := testbed.Addrs()
	provider, err := nd.Open(context.Background(), nd.Options{
		Mode: verbs.Embedded, Embed: verbs.Config{Adapters: testbed.Adapters(addrs)},
	})
	check(err)
	first, err = provider.OpenAdapterAt(addrs[0])
	check(err)
	second, err = provider.OpenAdapterAt(addrs[1])
	check(err)
	return provider, first, second
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// peer holds what one end of a connection needs.
type peer struct {
	cq        *nd.CompletionQueue
	qp        *nd.QueuePair
	mr        *nd.MemoryRegion
	connector *nd.Connector
}

func newPeer(ctx context.Context, a *nd.Adapter) *peer {
	p := new(peer)
	var err error
	p.cq, err = a.CreateCompletionQueue(16)
	check(err)
	p.mr, err = a.CreateMemoryRegion()
	check(err)
	check(p.mr.Allocate(ctx, 4096, nd.MRFlagAllowLocalWrite|nd.MRFlagAllowRemoteRead))
	p.qp, err = a.CreateQueuePair(nd.QueuePairConfig{
		ReceiveCompletionQueue: p.cq, InitiatorCompletionQueue: p.cq,
		ReceiveQueueDepth: 4, InitiatorQueueDepth: 4,
	})
	check(err)
	p.connector, err = a.CreateConnector()
	check(err)
	return p
}

func (p *peer) result(ctx context.Context) nd.Result {
	var r [1]nd.Result
	_, err := p.cq.WaitResults(ctx, r[:])
	check(err)
	return r[0]
}

// A server receives a message and answers it.
func Example() {
	provider, serverAdapter, clientAdapter := openTwo()
	defer provider.Close()
	ctx := context.Background()
	addrs, err := serverAdapter.QueryAddressList()
	check(err)
	listener, err := serverAdapter.Listen(netip.AddrPortFrom(addrs[0], 54325), 0)
	check(err)

	server := newPeer(ctx, serverAdapter)
	served := make(chan struct{})
	go func() {
		defer close(served)
		check(listener.GetConnectionRequest(ctx, server.connector))
		check(server.qp.Receive(1, []nd.SGE{server.mr.SGE(0, 100)}))
		check(server.connector.Accept(ctx, server.qp, nd.ConnectParams{}))
		r := server.result(ctx)
		fmt.Printf("server: %v of %q\n", r.RequestType, server.mr.Buffer()[:r.BytesTransferred])
		n := copy(server.mr.Buffer(), "pong")
		check(server.qp.Send(2, []nd.SGE{server.mr.SGE(0, n)}, 0))
		server.result(ctx)
	}()

	client := newPeer(ctx, clientAdapter)
	remote, err := listener.GetLocalAddress()
	check(err)
	check(client.connector.Connect(ctx, client.qp, remote, nd.ConnectParams{}))
	check(client.connector.CompleteConnect(ctx))
	check(client.qp.Receive(1, []nd.SGE{client.mr.SGE(100, 100)}))
	n := copy(client.mr.Buffer(), "ping")
	check(client.qp.Send(2, []nd.SGE{client.mr.SGE(0, n)}, nd.OpFlagSilentSuccess))
	r := client.result(ctx)
	<-served
	fmt.Printf("client: %v of %q\n", r.RequestType, client.mr.Buffer()[100:100+r.BytesTransferred])
	check(client.connector.Disconnect(ctx))
	// Output:
	// server: Receive of "ping"
	// client: Receive of "pong"
}

// A client reads the memory of a server without any action by the server's program.
func ExampleQueuePair_Read() {
	provider, serverAdapter, clientAdapter := openTwo()
	defer provider.Close()
	ctx := context.Background()
	addrs, err := serverAdapter.QueryAddressList()
	check(err)
	listener, err := serverAdapter.Listen(netip.AddrPortFrom(addrs[0], 0), 0)
	check(err)

	server := newPeer(ctx, serverAdapter)
	n := copy(server.mr.Buffer(), "read from afar")
	accepted := make(chan error, 1)
	go func() {
		check(listener.GetConnectionRequest(ctx, server.connector))
		accepted <- server.connector.Accept(ctx, server.qp, nd.ConnectParams{InboundReadLimit: 1})
	}()

	client := newPeer(ctx, clientAdapter)
	remote, err := listener.GetLocalAddress()
	check(err)
	check(client.connector.Connect(ctx, client.qp, remote, nd.ConnectParams{OutboundReadLimit: 1}))
	check(client.connector.CompleteConnect(ctx))
	check(<-accepted)
	// A server passes the address and token in a message or in its accept data.
	check(client.qp.Read(1, []nd.SGE{client.mr.SGE(0, n)}, server.mr.Address(), server.mr.GetRemoteToken(), 0))
	r := client.result(ctx)
	fmt.Printf("%v of %q\n", r.RequestType, client.mr.Buffer()[:n])
	// Output: Read of "read from afar"
}

// Errors carry their NetworkDirect status and name the address concerned.
func ExampleError() {
	provider, first, second := openTwo()
	defer provider.Close()
	ctx := context.Background()
	client := newPeer(ctx, second)
	addrs, err := first.QueryAddressList()
	check(err)

	err = client.connector.Connect(ctx, client.qp, netip.AddrPortFrom(addrs[0], 1), nd.ConnectParams{})
	fmt.Println(errors.Is(err, nd.ErrConnectionRefused))
	var e *nd.Error
	if errors.As(err, &e) {
		fmt.Println(e.Op, e.Name(), e.Addr.Port(), e.Detail)
	}
	// Output:
	// true
	// Connector.Connect ND_CONNECTION_REFUSED 1 nobody listens on this port (reject code 8)
}

// A pool creates queue pairs before the connections that need them.
func ExampleQueuePairsPool() {
	provider, adapter, _ := openTwo()
	defer provider.Close()
	pool, err := adapter.CreateQueuePairsPool()
	check(err)
	defer pool.Close()
	check(pool.SetQueuePairParams(nd.QueuePairParams{ReceiveQueueDepth: 16, InitiatorQueueDepth: 16}))
	check(pool.SetCompletionQueueParams(nd.CompletionQueueParams{ReceiveDepth: 32}))
	check(pool.SetLimits(0, 8))
	check(pool.Fill(context.Background()))

	qp, receive, initiator, err := pool.CreateObjects("connection 1")
	check(err)
	fmt.Println(qp.Context(), receive == initiator)
	s := pool.Statistics()
	fmt.Println("available", s.Available, "hits", s.Hits, "misses", s.Misses)
	check(qp.Close())
	check(receive.Close())
	// Output:
	// connection 1 true
	// available 7 hits 1 misses 0
}

// A program can learn when an adapter goes down and comes back up.
func ExampleProviderControl() {
	provider, adapter, _ := openTwo()
	defer provider.Close()
	addrs, err := adapter.QueryAddressList()
	check(err)
	told := make(chan nd.AdapterStatus, 1)
	registration, err := provider.Control().RegisterForAdapterStatus(addrs[0], func(_ netip.Addr, s nd.AdapterStatus) { told <- s })
	check(err)

	check(adapter.Device().SetEnabled(false))
	s := <-told
	fmt.Println("down:", s&nd.AdapterIsDown != 0)
	check(adapter.Device().SetEnabled(true))
	fmt.Println(<-told)
	check(provider.Control().DeregisterForAdapterStatus(registration))
	// Output:
	// down: true
	// up
}
