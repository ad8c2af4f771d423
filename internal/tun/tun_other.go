//go:build !linux

package tun

import "github.com/softvpi/softvpi/internal/offload"

// Device is an interface; this system does not support it.
type Device struct{}

// Open returns ErrUnsupported.
func Open(string) (*Device, error) { return nil, ErrUnsupported }

// Name returns "".
func (*Device) Name() string { return "" }

// Location returns ErrUnsupported.
func (*Device) Location() (Location, error) { return Location{}, ErrUnsupported }

// Each returns ErrUnsupported.
func (*Device) Each(func(offload.Header, []byte), func()) error { return ErrUnsupported }

// Write returns ErrUnsupported.
func (*Device) Write(offload.Header, [][]byte) error { return ErrUnsupported }

// SetOffloads returns ErrUnsupported.
func (*Device) SetOffloads(Offloads) error { return ErrUnsupported }

// Close does nothing.
func (*Device) Close() error { return nil }

// SetMTU returns ErrUnsupported.
func (*Device) SetMTU(int) error { return ErrUnsupported }

// SetCarrier returns ErrUnsupported.
func (*Device) SetCarrier(bool) error { return ErrUnsupported }

// Settings returns ErrUnsupported.
func (*Device) Settings() (Settings, error) { return Settings{}, ErrUnsupported }

// Watch returns ErrUnsupported.
func (*Device) Watch(func()) error { return ErrUnsupported }
