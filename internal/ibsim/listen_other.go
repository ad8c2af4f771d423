//go:build !linux

package ibsim

import "errors"

// DefaultName is the base of the socket names on Linux.
const DefaultName = "sim"

// ListenLocal needs abstract sockets, which only Linux has.
func ListenLocal(string) (Listener, error) {
	return nil, errors.New("abstract sockets exist on Linux only; listen over UDP")
}
