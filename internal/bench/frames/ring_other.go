//go:build !linux

package frames

import (
	"errors"
	"fmt"
)

func (c *Config) ringSender() (end, func(), error) {
	return nil, nil, fmt.Errorf("packet sockets: %w", errors.ErrUnsupported)
}

func (c *Config) ringReceiver() (end, func(), error) {
	return nil, nil, fmt.Errorf("packet sockets: %w", errors.ErrUnsupported)
}
