//go:build !linux

package umad

import (
	"errors"

	"github.com/softvpi/softvpi/internal/umad/socket"
)

func dialService(ServiceOptions) (Transport, Device, error) {
	return nil, Device{}, errors.New("such sockets exist on Linux only; allowed: " + variableServer +
		" with the name of the server's machine in place of " + socket.Variable)
}

var _ = device // on Linux
