// Package packetdirect gives programs queues of Ethernet frames at an adapter's port, without a network stack: in the shape of
// NDIS's PacketDirect provider interface (WinOF-2 24.4, "PacketDirect"), for Go.
//
// A program opens an Adapter, whose wire carries whole frames, and makes receive and transmit queues and pools of buffers. One
// call, PostAndDrain, gives a queue the buffers of a burst and takes back those that are done. Filters say which frames
// a receive queue gets; Wait sleeps until there is something to drain. A buffer that was received may be posted to any transmit
// queue of the same Adapter as it is, so that forwarding copies nothing in the program.
//
//	a, err := packetdirect.Open(ctx, packetdirect.Options{})
//	rx, err := a.NewReceiveQueue(packetdirect.QueueConfig{Depth: 512})
//	pool, err := a.NewPool(512, 0)
//	rx.PostAndDrain(pool.Buffers(), nil)
//	_, err = rx.AddFilter(packetdirect.Filter{EtherType: 0x88b5})
//	burst, n := make([]*packetdirect.Buffer, 32), 0
//	for {
//		if _, n, err = rx.PostAndDrain(burst[:n], burst); n == 0 && err == nil {
//			err = rx.Wait(ctx)
//		}
//		...
//	}
//
// Open uses the driver's adapters, through rings in memory shared with it, or an adapter of the program's own; Options says
// which. PostAndDrain allocates nothing (Wait does if it sleeps with a context that can end), and a burst costs at most one call
// of the driver, none while that is awake.
//
// What queues are made of are the raw packet queue pairs of package verbs (docs/ethernet.md, "Frames for programs"): what is
// said there of rules, of who may have them and of which frames they get holds here too.
package packetdirect
