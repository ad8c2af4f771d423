//go:build !linux

package tap

import (
	"errors"
	"fmt"
)

func open(Config) (Link, error) {
	return nil, fmt.Errorf("%s: interfaces of other systems than Linux: %w", name, errors.ErrUnsupported)
}
