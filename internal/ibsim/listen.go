package ibsim

import "net"

// peer is where a control message came from, in the form used by its listener.
type peer = net.Addr

// Listener is an address where clients attach: see ListenLocal and ListenUDP.
type Listener interface {
	// Close stops listening for new clients.
	Close() error
	// read reads a control message.
	read(b []byte) (n int, from peer, err error)
	// reply answers one.
	reply(to peer, b []byte)
	// same reports whether two messages came from the same client.
	same(a, b peer) bool
	// user returns whose program sent a message: the ID of the user, or the same for all if that is unknown.
	user(peer) uint32
	// open creates the data socket of a client with that ID.
	open(number, id uint32, from peer) (socket, error)
	// commands executes the commands of other processes until Close, if the listener accepts any.
	commands(*Server)
	// alive reports whether the client with an ID still exists.
	alive(id uint32) bool
}
