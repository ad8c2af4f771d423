//go:build !linux

package bench

import (
	"context"
	"errors"
)

// Forward is for Linux only.
func Forward(context.Context, [2]string, bool, bool, func()) error { return errors.ErrUnsupported }
