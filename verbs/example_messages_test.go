package verbs_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"github.com/softvpi/softvpi/verbs"
)

// dial creates a QP, connects it to a listener and returns it with its CQ.
func dial(ctx context.Context, from *verbs.Device, to netip.AddrPort, pd *verbs.PD) (*verbs.QP, *verbs.CQ) {
	cq, err := from.CreateCQ(8)
	check(err)
	qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 4, Inline: 64})
	check(err)
	id, err := from.NewID()
	check(err)
	check(id.Connect(ctx, to, qp, verbs.ConnParam{InitiatorDepth: 4}))
	check(id.Establish())
	return qp, cq
}

// A server receives the messages of all its clients through one shared receive queue.
func ExamplePD_CreateSRQ() {
	host, first, second := embedTwo()
	defer host.Close()
	ctx := context.Background()

	listener, err := first.Listen(netip.AddrPortFrom(first.Addr(), 0), 2)
	check(err)
	pd, err := first.AllocPD()
	check(err)
	cq, err := first.CreateCQ(8)
	check(err)
	srq, err := pd.CreateSRQ(verbs.SRQConfig{Depth: 8})
	check(err)
	const size = 64
	buffers, err := pd.Allocate(8*size, verbs.LocalWrite)
	check(err)
	for i := range uint64(8) {
		check(srq.PostRecv(&verbs.RecvWR{ID: i, SGE: []verbs.SGE{buffers.SGE(int(i)*size, size)}}))
	}
	var accepted sync.WaitGroup
	accepted.Go(func() {
		for range 2 {
			id, err := listener.Request(ctx)
			check(err)
			qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SRQ: srq, SendDepth: 4})
			check(err)
			check(id.Accept(ctx, qp, verbs.ConnParam{}))
		}
	})

	clientPD, err := second.AllocPD()
	check(err)
	for _, text := range []string{"from one client", "from another"} {
		qp, _ := dial(ctx, second, listener.Addr(), clientPD)
		check(qp.PostSend(&verbs.SendWR{Op: verbs.OpSend, Inline: []byte(text)}))
		var wc [1]verbs.WC
		_, err := cq.Next(ctx, wc[:])
		check(err)
		at := int(wc[0].ID) * size
		fmt.Println(wc[0].Op, wc[0].Status, string(buffers.Bytes()[at:at+int(wc[0].ByteLen)]))
	}
	accepted.Wait()
	// Output:
	// receive success from one client
	// receive success from another
}

// A client reads the memory of a server without any action by the server's program.
func ExampleQP_PostSend_read() {
	host, first, second := embedTwo()
	defer host.Close()
	ctx := context.Background()

	listener, err := first.Listen(netip.AddrPortFrom(first.Addr(), 0), 1)
	check(err)
	pd, err := first.AllocPD()
	check(err)
	shown, err := pd.Register([]byte("read from afar"), verbs.RemoteRead)
	check(err)
	var accepted sync.WaitGroup
	accepted.Go(func() {
		id, err := listener.Request(ctx)
		check(err)
		cq, err := first.CreateCQ(1)
		check(err)
		qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
		check(err)
		check(id.Accept(ctx, qp, verbs.ConnParam{ResponderResources: 4}))
	})

	clientPD, err := second.AllocPD()
	check(err)
	into, err := clientPD.Allocate(64, verbs.LocalWrite)
	check(err)
	qp, cq := dial(ctx, second, listener.Addr(), clientPD)
	accepted.Wait()
	check(qp.PostSend(&verbs.SendWR{
		Op: verbs.OpRead, Flags: verbs.Signaled, SGE: []verbs.SGE{into.SGE(0, shown.Len())},
		RemoteAddr: shown.RemoteAddr(), RKey: shown.RKey(), // which a server passes in a message or in its accept data
	}))
	var wc [1]verbs.WC
	_, err = cq.Next(ctx, wc[:])
	check(err)
	fmt.Println(wc[0].Op, wc[0].Status, string(into.Bytes()[:wc[0].ByteLen]))
	// Output: read success read from afar
}
