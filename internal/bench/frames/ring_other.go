//go:build !linux

package frames

import (
	"errors"
	"fmt"
)

func (c *Config) ringSender() (end, func(), error) {
	return nil, nil, fmt.Errorf("packet sockets: %w", errors.ErrUnsupported)
}

func (c *Config) ringReceiver() (e end, mac [6]byte, done func(), err error) {
	return nil, mac, nil, fmt.Errorf("packet sockets: %w", errors.ErrUnsupported)
}
