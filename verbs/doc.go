// Package verbs gives Go programs RDMA verbs (IBA chapters 10 and 11): protection
// domains, memory regions and windows, completion queues, shared receive queues,
// queue pairs of the RC, UC and UD services, address handles, multicast,
// asynchronous events and connection management.
//
// # Reaching an adapter
//
// A [Host] is a program's session with the adapters. [Open] attaches to a running driver process or, if
// there is none, embeds adapters in the program itself; [Embed] and [Attach] ask for one or the other.
// Everything else is the same for both.
//
//	host, err := verbs.Open(ctx, verbs.Options{})
//	dev, err := host.DeviceByAddr(netip.MustParseAddr("127.0.0.2"))
//	pd, err := dev.AllocPD()
//	mr, err := pd.Allocate(1<<20, verbs.LocalWrite|verbs.RemoteWrite)
//	cq, err := dev.CreateCQ(256)
//	qp, err := pd.CreateQP(verbs.QPConfig{Type: verbs.RC, SendCQ: cq, RecvCQ: cq, SendDepth: 64, RecvDepth: 64})
//
// # Control and data path
//
// Methods that create, change and destroy objects are commands to the adapter; they cost microseconds
// (embedded) to tens of microseconds (attached). Posting ([QP.PostSend], [QP.PostRecv], [SRQ.PostRecv])
// and polling ([CQ.Poll]) read and write rings in memory and allocate nothing. In embedded mode, a program
// that posts or polls also drives the adapter, its sockets included, when nothing else does; in attached
// mode there is no system call unless the driver sleeps and has to be woken.
//
// Commands that take no context fail with [ErrTimedOut] if the driver does not answer at all for a minute
// (because it is stopped, for instance) and with [ErrRemoved] if it is gone; [Host.Close] does not wait
// for it.
//
// # Concurrency
//
// Every method of every type is safe for concurrent use. Concurrent posts to one queue are ordered by when
// they took that queue's lock; completions of one CQ go to whichever caller polls first.
//
// # Memory
//
// A registered region is kept reachable and pinned (it neither moves nor is collected) until
// [MR.Deregister] returns; from then on no packet uses it. While a request that uses a buffer is
// outstanding, or a peer may write to it, reading and writing the bytes is a data race like any other;
// completions order them.
//
// # Errors
//
// A refused command returns an [*Error] that names the operation and the field; test its class with
// errors.Is and the Err values of this package.
package verbs
