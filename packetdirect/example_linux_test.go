package packetdirect_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/softvpi/softvpi/packetdirect"
	"github.com/softvpi/softvpi/verbs"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Two adapters of this process at the ends of a wire of unix sockets: one sends a burst, the other receives what its filter
// takes. With a driver, Options is all that differs: its Adapter names one of the driver's.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "pd")
	check(err)
	defer os.RemoveAll(dir)
	left, right := filepath.Join(dir, "left"), filepath.Join(dir, "right")
	from, err := packetdirect.Open(ctx, packetdirect.Options{Own: &verbs.AdapterConfig{Addr: addr(1),
		Ethernet: &verbs.Ethernet{Datagram: left, Peer: right}}})
	check(err)
	defer from.Close()
	to, err := packetdirect.Open(ctx, packetdirect.Options{Own: &verbs.AdapterConfig{Addr: addr(2),
		Ethernet: &verbs.Ethernet{Datagram: right, Peer: left}}})
	check(err)
	defer to.Close()

	// The receiver posts its buffers, then says which frames it wants.
	rx, err := to.NewReceiveQueue(packetdirect.QueueConfig{Depth: 64})
	check(err)
	buffers, err := to.NewPool(64, 0)
	check(err)
	_, _, err = rx.PostAndDrain(buffers.Buffers(), nil)
	check(err)
	_, err = rx.AddFilter(packetdirect.Filter{Dst: to.MAC(), EtherType: etherType})
	check(err)

	// The sender makes three frames and posts them as a burst.
	tx, err := from.NewTransmitQueue(packetdirect.QueueConfig{Depth: 64})
	check(err)
	pool, err := from.NewPool(3, 0)
	check(err)
	for i, b := range pool.Buffers() {
		b.Set(frame(to.MAC(), from.MAC(), 64))
		b.Bytes()[14] = byte(i)
	}
	_, _, err = tx.PostAndDrain(pool.Buffers(), nil)
	check(err)

	// A burst that was looked at is given back by the call that takes the next.
	burst, n := make([]*packetdirect.Buffer, 32), 0
	for got := 0; got < 3; got += n {
		check(rx.Wait(ctx))
		_, n, err = rx.PostAndDrain(burst[:n], burst)
		check(err)
		for _, b := range burst[:n] {
			fmt.Printf("got frame %d of %d bytes\n", b.Bytes()[14], len(b.Bytes()))
		}
	}
	// Output:
	// got frame 0 of 64 bytes
	// got frame 1 of 64 bytes
	// got frame 2 of 64 bytes
}

// Frames are spread over four queues, which would have a goroutine each, by the flows that they are of; a large packet of TCP leaves as
// frames of the adapter's making.
func ExampleAdapter_NewSpread() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "pd")
	check(err)
	defer os.RemoveAll(dir)
	left, right := filepath.Join(dir, "left"), filepath.Join(dir, "right")
	from, err := packetdirect.Open(ctx, packetdirect.Options{Own: &verbs.AdapterConfig{Addr: addr(1),
		Ethernet: &verbs.Ethernet{Datagram: left, Peer: right}}})
	check(err)
	defer from.Close()
	to, err := packetdirect.Open(ctx, packetdirect.Options{Own: &verbs.AdapterConfig{Addr: addr(2),
		Ethernet: &verbs.Ethernet{Datagram: right, Peer: left}}})
	check(err)
	defer to.Close()

	var queues []*packetdirect.ReceiveQueue
	for range 4 {
		q, err := to.NewReceiveQueue(packetdirect.QueueConfig{Depth: 64})
		check(err)
		pool, err := to.NewPool(64, 0)
		check(err)
		_, _, err = q.PostAndDrain(pool.Buffers(), nil)
		check(err)
		queues = append(queues, q)
	}
	spread, err := to.NewSpread(packetdirect.SpreadConfig{Queues: queues})
	check(err)
	_, err = spread.AddFilter(packetdirect.Filter{Protocol: 6})
	check(err)

	tx, err := from.NewTransmitQueue(packetdirect.QueueConfig{Large: true})
	check(err)
	pool, err := from.NewPool(1, 1<<16)
	check(err)
	packet, head := pool.Buffers()[0], segmentHead(to.MAC(), from.MAC())
	copy(packet.Room(), head)
	packet.SetLarge(len(head)+3000, len(head), 1400)
	_, _, err = tx.PostAndDrain(pool.Buffers(), nil)
	check(err)

	burst := make([]*packetdirect.Buffer, 32)
	for got := 0; got < 3; {
		for i, q := range queues {
			_, n, err := q.PostAndDrain(nil, burst)
			check(err)
			for _, b := range burst[:n] {
				fmt.Printf("queue %d: %d bytes, hash %#x\n", i, len(b.Bytes()), b.Hash())
			}
			got += n
		}
	}
	// Output:
	// queue 0: 1454 bytes, hash 0xcd8769f0
	// queue 0: 1454 bytes, hash 0xcd8769f0
	// queue 0: 254 bytes, hash 0xcd8769f0
}
