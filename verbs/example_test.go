package verbs_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// embedTwo creates a host with two adapters at free addresses. A real program would
// give its own addresses, or use the driver's adapters: verbs.Open(ctx, verbs.Options{}).
func embedTwo() (host *verbs.Host, first, second *verbs.Device) {
	addrs := testbed.Addrs()
	host, err := verbs.Embed(verbs.Config{Adapters: testbed.Adapters(addrs)})
	check(err)
	first, err = host.DeviceByAddr(addrs[0])
	check(err)
	second, err = host.DeviceByAddr(addrs[1])
	check(err)
	return host, first, second
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A client connects and writes into the server's memory.
func Example() {
	host, serverDevice, clientDevice := embedTwo()
	defer host.Close()
	ctx := context.Background()

	// The server registers memory and passes its address and key when it accepts.
	listener, err := serverDevice.Listen(netip.AddrPortFrom(serverDevice.Addr(), 7471), 1)
	check(err)
	serverPD, err := serverDevice.AllocPD()
	check(err)
	target, err := serverPD.Allocate(4096, verbs.LocalWrite|verbs.RemoteWrite)
	check(err)
	accepted := make(chan error, 1)
	go func() {
		id, err := listener.Request(ctx)
		check(err)
		cq, err := serverDevice.CreateCQ(8)
		check(err)
		qp, err := serverPD.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 4})
		check(err)
		where := fmt.Sprintf("%016x%08x", target.RemoteAddr(), target.RKey())
		accepted <- id.Accept(ctx, qp, verbs.ConnParam{Private: []byte(where)})
	}()

	// The client connects and writes.
	pd, err := clientDevice.AllocPD()
	check(err)
	source, err := pd.Register([]byte("written from afar"), 0)
	check(err)
	cq, err := clientDevice.CreateCQ(8)
	check(err)
	qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 4})
	check(err)
	id, err := clientDevice.NewID()
	check(err)
	check(id.Connect(ctx, listener.Addr(), qp, verbs.ConnParam{}))
	check(id.Establish())
	check(<-accepted)

	var addr uint64
	var key uint32
	_, err = fmt.Sscanf(string(id.Peer().Private[:24]), "%16x%8x", &addr, &key)
	check(err)
	check(qp.PostSend(&verbs.SendWR{
		Op: verbs.OpWrite, Flags: verbs.Signaled, SGE: []verbs.SGE{source.SGE(0, source.Len())},
		RemoteAddr: addr, RKey: key,
	}))
	var done [1]verbs.WC
	_, err = cq.Next(ctx, done[:])
	check(err)
	fmt.Println(done[0].Op, done[0].Status)
	fmt.Printf("%s\n", target.Bytes()[:source.Len()])
	check(id.Disconnect(ctx))
	// Output:
	// write success
	// written from afar
}

// Datagrams need no connection: an address handle gives the destination, and the
// Q_Key lets the receiver accept them.
func ExamplePD_CreateAH() {
	host, first, second := embedTwo()
	defer host.Close()
	const qkey = 0x11111111

	newQP := func(d *verbs.Device) (*verbs.QP, *verbs.CQ, *verbs.MR) {
		pd, err := d.AllocPD()
		check(err)
		cq, err := d.CreateCQ(8)
		check(err)
		mr, err := pd.Allocate(4096, verbs.LocalWrite)
		check(err)
		qp, err := pd.CreateQP(verbs.QPConfig{Type: verbs.UD, SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 4, Inline: 64})
		check(err)
		check(qp.Modify(verbs.QPAttr{State: verbs.StateInit, QKey: qkey}, verbs.MaskState|verbs.MaskPKeyIndex|verbs.MaskQKey))
		check(qp.Modify(verbs.QPAttr{State: verbs.StateRTR}, verbs.MaskState))
		check(qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.MaskState|verbs.MaskSQPSN))
		return qp, cq, mr
	}
	receiver, receiverCQ, inbox := newQP(first)
	sender, _, _ := newQP(second)

	check(receiver.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{inbox.SGE(0, inbox.Len())}}))
	ah, err := sender.PD().CreateAH(verbs.AddressVector{Addr: first.Addr()})
	check(err)
	check(sender.PostSend(&verbs.SendWR{
		Op: verbs.OpSend, Inline: []byte("a datagram"), AH: ah, RemoteQPN: receiver.Number(), RemoteQKey: qkey,
	}))
	var wc [1]verbs.WC
	_, err = receiverCQ.Next(context.Background(), wc[:])
	check(err)
	const grh = 40 // the GRH precedes the data
	fmt.Printf("%s, from the sender: %v\n", inbox.Bytes()[grh:wc[0].ByteLen], wc[0].SrcQP == sender.Number())
	// Output: a datagram, from the sender: true
}

// A client increments a counter in its peer's memory and gets the old value back.
func ExampleQP_PostSend_atomic() {
	host, first, second := embedTwo()
	defer host.Close()
	ctx := context.Background()

	listener, err := first.Listen(netip.AddrPortFrom(first.Addr(), 0), 1)
	check(err)
	pd, err := first.AllocPD()
	check(err)
	counter, err := pd.Allocate(8, verbs.LocalWrite|verbs.RemoteAtomic)
	check(err)
	accepted := make(chan error, 1)
	go func() {
		id, err := listener.Request(ctx)
		check(err)
		cq, err := first.CreateCQ(1)
		check(err)
		qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
		check(err)
		accepted <- id.Accept(ctx, qp, verbs.ConnParam{ResponderResources: 1})
	}()

	clientPD, err := second.AllocPD()
	check(err)
	old, err := clientPD.Allocate(8, verbs.LocalWrite)
	check(err)
	cq, err := second.CreateCQ(4)
	check(err)
	qp, err := clientPD.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 4})
	check(err)
	id, err := second.NewID()
	check(err)
	check(id.Connect(ctx, listener.Addr(), qp, verbs.ConnParam{InitiatorDepth: 1}))
	check(id.Establish())
	check(<-accepted)
	for range 3 {
		check(qp.PostSend(&verbs.SendWR{
			Op: verbs.OpFetchAdd, Flags: verbs.Signaled, Add: 5, SGE: []verbs.SGE{old.SGE(0, 8)},
			RemoteAddr: counter.RemoteAddr(), RKey: counter.RKey(),
		}))
		var wc [1]verbs.WC
		_, err := cq.Next(ctx, wc[:])
		check(err)
		fmt.Println(wc[0].Op, wc[0].Status, old.Bytes()[0], "->", counter.Bytes()[0])
	}
	// Output:
	// fetch and add success 0 -> 5
	// fetch and add success 5 -> 10
	// fetch and add success 10 -> 15
}

// A test can bring its own adapters and its own lossy network, with no driver or privileges.
func ExampleEmbed() {
	addrs := testbed.Addrs() // two addresses in 127.0.0.0/8 that no other process uses
	host, err := verbs.Embed(verbs.Config{Adapters: []verbs.AdapterConfig{
		{Name: "left", Addr: addrs[0], Wire: true},
		{Name: "right", Addr: addrs[1], Impairment: "loss=1% delay=50us seed=7"},
	}})
	check(err)
	defer host.Close()
	devices, err := host.Devices(context.Background())
	check(err)
	for _, d := range devices {
		fmt.Println(d.Name())
	}
	// Output:
	// left
	// right
}
