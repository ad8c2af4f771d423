package server

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
)

// Host provides the adapters to which a server attaches programs.
type Host interface {
	// NewClient adds a program. The session's Close destroys its objects.
	NewClient(device.ClientConfig) (Session, error)
	// Doorbells returns the number of entries of the doorbell queue at offset 0 of every client's arena 0.
	Doorbells() int
	// Zero returns CLOCK_MONOTONIC, in nanoseconds, at which the clock of completions was 0.
	Zero() uint64
}

// Session is one attached program in the driver.
type Session interface {
	command.Commands
	Close() error
}
