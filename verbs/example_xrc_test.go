package verbs_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/verbs"
)

// One extended reliable connection serves several queues of its peer: each request names the one that it is for.
func Example_extendedReliableConnection() {
	host, serverDevice, clientDevice := embedTwo()
	defer host.Close()
	ctx := context.Background()

	// The server has two shared receive queues in a domain, and tells their numbers when it accepts.
	listener, err := serverDevice.ListenXRC(netip.AddrPortFrom(serverDevice.Addr(), 7471), 1)
	check(err)
	domain, err := serverDevice.OpenXRCDomain(verbs.XRCDomainConfig{})
	check(err)
	serverPD, err := serverDevice.AllocPD()
	check(err)
	var queues [2]*verbs.CQ
	var memory [2]*verbs.MR
	var numbers []byte
	for i := range queues {
		queues[i], err = serverDevice.CreateCQ(8)
		check(err)
		memory[i], err = serverPD.Allocate(4096, verbs.LocalWrite)
		check(err)
		srq, err := serverPD.CreateSRQ(verbs.SRQConfig{Depth: 4, XRC: domain, CQ: queues[i]})
		check(err)
		check(srq.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{memory[i].SGE(0, 4096)}}))
		numbers = binary.BigEndian.AppendUint32(numbers, srq.Number())
	}
	accepted := make(chan error, 1)
	go func() {
		id, err := listener.Request(ctx)
		check(err)
		target, err := domain.CreateTarget(0)
		check(err)
		accepted <- id.Accept(ctx, target, verbs.ConnParam{Private: numbers})
	}()

	// The client connects an initiator, and sends to both.
	pd, err := clientDevice.AllocPD()
	check(err)
	cq, err := clientDevice.CreateCQ(8)
	check(err)
	initiator, err := pd.CreateQP(verbs.QPConfig{Type: verbs.XRCInitiator, SendCQ: cq, SendDepth: 4, Inline: 64})
	check(err)
	id, err := clientDevice.NewXRCID()
	check(err)
	check(id.Connect(ctx, listener.Addr(), initiator, verbs.ConnParam{}))
	check(id.Establish())
	check(<-accepted)
	for i, text := range []string{"to the first", "to the second"} {
		number := binary.BigEndian.Uint32(id.Peer().Private[4*i:])
		check(initiator.PostSend(&verbs.SendWR{Op: verbs.OpSend, Inline: []byte(text), RemoteSRQ: number}))
	}
	for i, q := range queues {
		var done [1]verbs.WC
		_, err = q.Next(ctx, done[:])
		check(err)
		fmt.Printf("%s\n", memory[i].Bytes()[:done[0].ByteLen])
	}
	check(id.Disconnect(ctx))
	// Output:
	// to the first
	// to the second
}
