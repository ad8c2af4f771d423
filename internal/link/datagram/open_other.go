//go:build !linux

package datagram

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/softvpi/softvpi/internal/link"
)

// open uses package net, which has unix datagram sockets everywhere but on Windows.
func open(cfg Config) (link.Link, error) {
	if runtime.GOOS == "windows" {
		return nil, fmt.Errorf("%s: unix datagram sockets: %w", name, errors.ErrUnsupported)
	}
	return openPortable(cfg)
}
