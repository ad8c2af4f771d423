//go:build !linux

package live

import (
	"context"
	"fmt"
	"io/fs"
	"net"

	"github.com/softvpi/softvpi/internal/link/cable"
)

// Listen opens the socket at which adapters in other processes are plugged in, on Linux. On this system it
// fails with cable.ErrNotHere.
func Listen(string, fs.FileMode) (*net.UnixListener, error) {
	return nil, fmt.Errorf("cables between processes: %w", cable.ErrNotHere)
}

// Serve is implemented on Linux only.
func (r *Rack) Serve(context.Context, *net.UnixListener) error {
	return fmt.Errorf("cables between processes: %w", cable.ErrNotHere)
}
