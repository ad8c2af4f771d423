//go:build !unix

package frames

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
