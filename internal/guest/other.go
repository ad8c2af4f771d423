//go:build !linux

package guest

import (
	"context"

	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// Serve is for Linux.
func Serve(context.Context, ServeConfig) error { return proto.ErrPlatform }

// Attach is for Linux.
func Attach(context.Context, AttachConfig) error { return proto.ErrPlatform }
