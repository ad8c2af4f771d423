//go:build !linux

package netspace

import (
	"errors"
	"net"
)

// Own is for Linux, which has network namespaces.
func Own() (ID, error) { return ID{}, errors.ErrUnsupported }

// OfPeer is for Linux.
func OfPeer(*net.UnixConn) (ID, error) { return ID{}, errors.ErrUnsupported }
