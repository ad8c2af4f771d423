package verbs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/os/paths"
)

var (
	_ backend = (*client.Client)(nil)
	_ sharer  = (*client.Client)(nil)

	_ introducer = (*client.Client)(nil)
	_ carrier    = (*client.Client)(nil)
)

// Attach opens a session with the adapters of the driver process that listens on socket; an empty socket
// means DefaultSocket. If no driver is listening, the error is an fs.ErrNotExist or syscall.ECONNREFUSED;
// on systems that do not support attaching it is an errors.ErrUnsupported.
func Attach(ctx context.Context, socket string) (*Host, error) {
	return attach(ctx, socket, client.Options{})
}

func attach(ctx context.Context, socket string, o client.Options) (*Host, error) {
	if socket == "" {
		socket = DefaultSocket()
	}
	socket = paths.Attach(socket)
	c, err := client.Dial(ctx, socket, o)
	if err != nil {
		var refused *command.Error
		if errors.As(err, &refused) || ctx.Err() != nil {
			return nil, wrapCtx(ctx, "attach to "+socket, err)
		}
		if name := os.Getenv(paths.FunctionVariable); name != "" && noDriver(err) {
			return nil, fmt.Errorf("%s is %q: no driver has such a virtual function at %s", paths.FunctionVariable, name, socket)
		}
		if reason := syscall.Errno(0); noDriver(err) && errors.As(err, &reason) {
			return nil, fmt.Errorf("no driver is running at %s (%w); start one with: softvpi up", socket, reason)
		}
		return nil, err
	}
	return newHost(Attached, c, nil), nil
}

// noDriver reports whether an error of Attach means that no driver is running, rather than that the driver
// turned this program away.
func noDriver(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errors.ErrUnsupported)
}
