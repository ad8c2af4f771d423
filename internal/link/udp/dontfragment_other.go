//go:build !linux && !darwin && !windows

package udp

import "errors"

// dontFragment cannot set the don't-fragment bit on this platform.
func dontFragment(uintptr, bool) error { return errors.ErrUnsupported }
