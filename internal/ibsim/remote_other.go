//go:build !linux

package ibsim

import "errors"

// ErrNoServer is a name under which no fabric is served on this machine.
var ErrNoServer = errors.New("no fabric is served under this name: that needs abstract sockets, which Linux alone has")

// Do is there on Linux only.
func Do(string, string) (string, error) { return "", ErrNoServer }
