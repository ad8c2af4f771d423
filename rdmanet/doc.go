// Package rdmanet gives programs that know nothing of RDMA connections over it:
// net.Conn and net.Listener on the queue pairs of package nd. Bytes arrive once,
// in order and whole; deadlines, half close and errors are those of the net
// package.
//
// [Dial] and [Listen] use the adapters that nd.Open finds: those of the driver
// where it runs, else one of the program's own. [Dialer] and [ListenConfig]
// choose an adapter and the sizes of buffers. Dialer.DialContext fits into
// http.Transport:
//
//	server := &http.Server{Handler: mux}
//	l, err := rdmanet.Listen("127.0.0.2:8080")
//	go server.Serve(l)
//
//	dialer := &rdmanet.Dialer{}
//	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
//	response, err := client.Get("http://127.0.0.2:8080/")
//
// # On the wire
//
// Both sides tell each other in the private data of the connection request and
// its answer how many receive buffers they post and of what size. Every message
// is a NetworkDirect Send: a header of 8 bytes (kind, three zero bytes, credits
// that are given back as a 32-bit number, little-endian) and up to a buffer less
// the header of data. A side sends data only where the peer has a free buffer
// for it: it begins with a credit for each and gets one back when the peer's
// program has read the data. Kinds are data, credit (nothing but credits) and
// finish (no more data comes); the latter two have receive buffers of their own.
package rdmanet
