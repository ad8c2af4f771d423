//go:build !linux

package live

import "time"

// pause sets a timer.
func pause(t *time.Timer, d time.Duration) { t.Reset(d) }
