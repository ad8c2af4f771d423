// Package verbs gives Go programs RDMA verbs (IBA chapters 10 and 11): protection
// domains, memory regions and windows, completion queues, shared receive queues,
// queue pairs of the RC, UC and UD services, address handles, multicast,
// asynchronous events and connection management.
//
// # Reaching an adapter
//
// A [Host] is a program's session with the adapters. [Open] attaches to the
// driver process where one answers and otherwise embeds adapters in the program
// itself; [Embed] and [Attach] ask for one or the other. Everything else is the
// same for both.
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
// Methods that create, change and destroy objects are commands to the adapter;
// they cost microseconds (embedded) to tens of microseconds (attached). Posting
// ([QP.PostSend], [QP.PostRecv], [SRQ.PostRecv]) and polling ([CQ.Poll]) read and
// write rings in memory and allocate nothing. Embedded, whoever posts or polls
// also drives the adapter where nobody else does, its sockets included; attached,
// there is no system call unless the driver sleeps and has to be woken.
//
// Commands that take no context end with [ErrTimedOut] where the driver answers nothing at all for a minute,
// as one that was stopped does, and with [ErrRemoved] where it is gone; [Host.Close] does not wait for it.
//
// # Concurrency
//
// Every method of every type is safe for concurrent use. Posts to one queue are
// put in the order in which they took that queue's lock; completions of one CQ
// are handed to whoever polls first.
//
// # Memory
//
// A registered region is kept reachable and pinned (it neither moves nor is
// collected) until [MR.Deregister] returns, which is when no packet uses it any
// more. While a request that uses a buffer is outstanding, or a peer may write to
// it, reading and writing the bytes is a data race like any other; completions
// order them.
//
// # Errors
//
// Refused commands answer an [*Error] that names the operation and the field;
// errors.Is against the Err values of this package tells its class.
package verbs
