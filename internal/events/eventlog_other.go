//go:build !windows

package events

import "errors"

// openEventLog returns an error: only Windows has one.
func openEventLog() (destination, error) { return destination{}, errors.New("not on this system") }
