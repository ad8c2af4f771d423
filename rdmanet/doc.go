// Package rdmanet gives programs that know nothing of RDMA connections over it: net.Conn and net.Listener
// on top of the queue pairs of package nd. It is a reliable byte stream; deadlines, half-close and errors
// are those of the net package.
//
// [Dial] and [Listen] use the adapters that nd.Open finds: those of the driver if it is running, else one
// of the program's own. [Dialer] and [ListenConfig] choose an adapter and the sizes of buffers.
// Dialer.DialContext fits into http.Transport:
//
//	server := &http.Server{Handler: mux}
//	l, err := rdmanet.Listen("127.0.0.2:8080")
//	go server.Serve(l)
//
//	dialer := &rdmanet.Dialer{}
//	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
//	response, err := client.Get("http://127.0.0.2:8080/")
//
// # Waiting
//
// The connections of an adapter share a completion queue. One of the goroutines that wait in Read, Write or Close
// sleeps for all of them and hands what arrives to the others; while no goroutine waits nothing polls, and an idle
// connection has no goroutine. If a single connection is busy and its peer answers within some 40 us, its reader looks
// for the answer instead of sleeping, unless GOMAXPROCS is 1. The thread of a sleeping reader keeps one of the
// runtime's processors until the runtime notices, as in any system call that blocks.
//
// A connection on which nothing has arrived for 15 s is probed, as with net.TCPConn; see [Conn.SetKeepAlive].
//
// # On the wire
//
// In the private data of the connection request and its answer, the sides tell each other how many receive
// buffers they post and of what size. Every message is a NetworkDirect Send: a header of 8 bytes (kind,
// three zero bytes, returned credits as a 32-bit little-endian number), followed by data up to the rest of
// a buffer. A side sends data only if the peer has a free buffer for it: it starts with one credit for
// each buffer and gets one back when the peer's program has read the data. Kinds are data, credit (nothing
// but credits) and finish (no more data follows); the latter two have receive buffers of their own.
package rdmanet
