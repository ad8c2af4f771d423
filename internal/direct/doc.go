// Package direct implements the direct path between two programs of one driver: what the driver shares
// with them, as fixed little-endian layouts (docs/spec/ipc.md), and how the initiator of a request carries it
// out in the memory of its peer.
//
// The path is delegated. While a pair of connected queue pairs is at rest in the driver, the driver delegates each
// program the right to carry out its own requests: the send queue of one end with the receive queue of the
// other is a direction, and while it is delegated only its initiator works on it. Only successful requests are
// handled here. For everything else the initiator gives the direction back, with the request untouched,
// and the driver handles it with all its checks and errors.
package direct
