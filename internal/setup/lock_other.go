//go:build !unix

package setup

import (
	"errors"
	"os"
)

func lockFile(*os.File) error { return errors.ErrUnsupported }
