package ibsim

import "net"

// peer is where a control message came from, as its listener knows it.
type peer = net.Addr

// Listener is a place where clients attach: see ListenLocal and ListenUDP.
type Listener interface {
	// Close ends the listening for new clients.
	Close() error
	// read takes a control message.
	read(b []byte) (n int, from peer, err error)
	// reply answers one.
	reply(to peer, b []byte)
	// same tells whether two messages came from one client.
	same(a, b peer) bool
	// open makes the data socket of a client, which gave an ID.
	open(number, id uint32, from peer) (socket, error)
	// commands does the commands of other processes until Close, where the listener takes any.
	commands(*Server)
	// alive tells whether the client with an ID is still there.
	alive(id uint32) bool
}
