//go:build !unix

package events

import "errors"

// dialDatagram returns an error: this system has no such sockets.
func dialDatagram(string) (func([]byte) error, error) {
	return nil, errors.New("not on this system")
}
