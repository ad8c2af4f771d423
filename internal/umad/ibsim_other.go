//go:build !linux

package umad

import "errors"

func dialIbsimLocal(IbsimOptions, *ibsim) (Device, error) {
	return Device{}, errors.New("abstract sockets exist on Linux only; allowed: IBSIM_SERVER_NAME with the name of the server's machine")
}
