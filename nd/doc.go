// Package nd is the NetworkDirect service provider interface, version 2, in Go: RDMA sends, receives,
// reads and writes between connected queue pairs, with the names and the behaviour of Microsoft's
// interface and the vendor extensions of the WinOF manual (4.9.1.1 and 4.11.1).
//
// # From IND2 to Go
//
// The interfaces become types without their prefix: [Provider], [Adapter], [CompletionQueue], [QueuePair],
// [Connector], [Listener], [MemoryRegion], [MemoryWindow] and [SharedReceiveQueue]; methods keep their
// names. The differences:
//
//   - An overlapped call is a method that takes a [context.Context] and returns
//     when the operation is done; run it on a goroutine of its own to continue
//     meanwhile. If the context ends, the call fails with ND_CANCELED
//     (ND_IO_TIMEOUT if its deadline passed while a connection was being set up).
//     There are therefore no CreateOverlappedFile and GetOverlappedResult;
//     CancelOverlappedRequests cancels all waiting calls of an object.
//   - HRESULTs are [Status] values, and a failed call returns an [*Error] that
//     holds one. Compare with errors.Is against ErrConnectionRefused and so on.
//   - An ND2_SGE refers to its memory by a byte slice inside a registered region.
//   - Release is Close.
//
// # A connection
//
//	provider, err := nd.Open(ctx, nd.Options{})
//	adapter, err := provider.OpenAdapterAt(netip.MustParseAddr("127.0.0.2"))
//	cq, err := adapter.CreateCompletionQueue(128)
//	mr, err := adapter.CreateMemoryRegion()
//	err = mr.Register(ctx, buf, nd.MRFlagAllowLocalWrite)
//	qp, err := adapter.CreateQueuePair(nd.QueuePairConfig{
//		ReceiveCompletionQueue: cq, InitiatorCompletionQueue: cq,
//		ReceiveQueueDepth: 16, InitiatorQueueDepth: 16,
//	})
//	connector, err := adapter.CreateConnector()
//	err = connector.Connect(ctx, qp, remote, nd.ConnectParams{})
//	err = connector.CompleteConnect(ctx)
//	err = qp.Send(1, []nd.SGE{mr.SGE(0, 64)}, 0)
//	n, err := cq.WaitResults(ctx, results)
//
// # Concurrency and allocation
//
// Every method is safe for concurrent use. Posting requests and GetResults
// allocate nothing.
package nd
