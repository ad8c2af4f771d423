package verbs

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
)

// noDriver reports whether err of Attach says that no driver runs, as against
// one that does not want this program.
func noDriver(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, ErrUnsupported)
}

// Attach returns a session with the adapters of the driver process that listens
// on socket; empty: DefaultSocket.
func Attach(ctx context.Context, socket string) (*Host, error) {
	if socket == "" {
		socket = DefaultSocket()
	}
	if err := ctx.Err(); err != nil {
		return nil, wrap("attach", err)
	}
	return nil, newError("attach", ErrUnsupported, "attaching to %s is not built yet", socket)
}
