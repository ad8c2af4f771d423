//go:build !linux

package tun

import "github.com/softvpi/softvpi/internal/offload"

// Device is an interface; on this system there is none.
type Device struct{}

// Open answers ErrUnsupported.
func Open(string) (*Device, error) { return nil, ErrUnsupported }

// Name is the interface's name.
func (*Device) Name() string { return "" }

// Each answers ErrUnsupported.
func (*Device) Each(func(offload.Header, []byte), func()) error { return ErrUnsupported }

// Write answers ErrUnsupported.
func (*Device) Write(offload.Header, [][]byte) error { return ErrUnsupported }

// SetOffloads answers ErrUnsupported.
func (*Device) SetOffloads(Offloads) error { return ErrUnsupported }

// Close does nothing.
func (*Device) Close() error { return nil }

// SetMTU answers ErrUnsupported.
func (*Device) SetMTU(int) error { return ErrUnsupported }

// SetCarrier answers ErrUnsupported.
func (*Device) SetCarrier(bool) error { return ErrUnsupported }

// Settings answers ErrUnsupported.
func (*Device) Settings() (Settings, error) { return Settings{}, ErrUnsupported }

// Watch answers ErrUnsupported.
func (*Device) Watch(func()) error { return ErrUnsupported }
