//go:build !linux

package worker

import (
	"errors"
	"net/netip"
)

func lose(float64, ...netip.Addr) (func() error, error) {
	return nil, errors.New("losing packets at random is Linux only")
}
