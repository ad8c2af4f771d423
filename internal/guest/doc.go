// Package guest gives programs of a virtual machine a virtual function of the host's driver without a module of their kernel: Serve is the
// host's side of package ipc/remote, and Attach is what offers them a driver's socket in the machine. The stream between them is a port of
// virtio-serial, vsock, or a unix socket.
package guest

import (
	"log/slog"

	"github.com/softvpi/softvpi/internal/os/peer"
)

// ServeConfig says for whom which virtual function is.
type ServeConfig struct {
	Socket   string // of the virtual function
	Listen   Address
	Log      *slog.Logger
	Listens  func() // called once a machine can come; nil: not called
	Admitted peer.Audience
}

// AttachConfig says where the host's side is, and where programs find the driver.
type AttachConfig struct {
	Host     Address
	Socket   string // that is made for programs
	Audience peer.Audience
	Driver   string // name and version, reported to programs
	Log      *slog.Logger
	Attached func() // called each time that programs can attach; nil: not called
}

// MostStreams is how many streams a virtual function has at a time: of a machine one, and of one that starts anew one more until the
// first is known to have ended.
const MostStreams = 16
