//go:build !linux

package ethernet

import (
	"errors"
	"fmt"

	"github.com/softvpi/softvpi/internal/link"
)

func open(Config) (link.Link, error) {
	return nil, fmt.Errorf("%s: interfaces of other systems than Linux: %w", name, errors.ErrUnsupported)
}
