package ipc

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
)

// Host is what a server attaches programs to.
type Host interface {
	// NewClient adds a program. The session's Close tears its objects down.
	NewClient(device.ClientConfig) (Session, error)
	// Doorbells is the number of entries of the doorbell queue at offset 0 of
	// arena 0 of every client.
	Doorbells() int
}

// Session is one attached program in the driver.
type Session interface {
	command.Commands
	Close() error
}
