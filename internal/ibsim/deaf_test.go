package ibsim

import (
	"net"
)

// deaf is a listener whose clients are one end of a pipe.
type deaf struct{}

func (*deaf) Close() error                   { return nil }
func (*deaf) read([]byte) (int, peer, error) { return 0, nil, errDeaf }
func (*deaf) reply(peer, []byte)             {}
func (*deaf) same(a, b peer) bool            { return a == b }
func (*deaf) alive(uint32) bool              { return true }
func (*deaf) open(uint32, uint32, peer) (net.Conn, error) {
	a, _ := net.Pipe()
	return a, nil
}
