// Package scale tests the stack as a whole at size and under attack: programs in
// processes of their own that are killed, ten thousand connections, small receive
// buffers, hostile packets on real sockets, impaired links and calls that are
// cancelled at any moment.
//
// The tests run a reduced form by default; SOFTVPI_SCALE=full runs them at the
// size of the requirements. They print what they measured with go test -v.
package scale
