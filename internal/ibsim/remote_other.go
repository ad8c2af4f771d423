//go:build !linux

package ibsim

import "errors"

// ErrNoServer says that no fabric is served under a name on this machine.
var ErrNoServer = errors.New("no fabric is served under this name: that needs abstract sockets, which only Linux has")

// Do is implemented on Linux only.
func Do(string, string) (string, error) { return "", ErrNoServer }
