//go:build !linux

package cmdlets

import (
	"errors"
	"fmt"
	"net/netip"
)

// System is the network of this system, of which only Linux has interfaces that belong to adapters.
type System struct{}

var errNoInterfaces = fmt.Errorf("network interfaces that belong to adapters: %w on this system", errors.ErrUnsupported)

// Addresses implements Network.
func (System) Addresses(string) ([]netip.Prefix, error) { return nil, errNoInterfaces }

// AddAddress implements Network.
func (System) AddAddress(string, netip.Prefix) error { return errNoInterfaces }

// RemoveAddress implements Network.
func (System) RemoveAddress(string, netip.Prefix) error { return errNoInterfaces }

// Routes implements Network.
func (System) Routes(string) ([]Route, error) { return nil, errNoInterfaces }

// AddRoute implements Network.
func (System) AddRoute(string, Route) error { return errNoInterfaces }

// RemoveRoute implements Network.
func (System) RemoveRoute(string, Route) error { return errNoInterfaces }
