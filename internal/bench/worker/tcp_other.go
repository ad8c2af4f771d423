//go:build !linux

package worker

import (
	"context"
	"errors"
	"math"
	"net/netip"
)

var errLinux = errors.New("measured on Linux only")

func fileLimit() int { return math.MaxInt }

func dialWire(netip.AddrPort, bool) (wire, error) { return nil, errLinux }

func acceptWire(netip.AddrPort, bool) (wire, error) { return nil, errLinux }

func keepAwake(context.Context) error { return errLinux }
