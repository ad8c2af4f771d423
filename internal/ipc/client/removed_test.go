package client

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

// TestRemovedTellsWhatEndedTheStream: the end of the stream adds nothing to the message that the driver is gone; any
// other cause is named.
func TestRemovedTellsWhatEndedTheStream(t *testing.T) {
	for _, c := range []struct {
		cause error
		want  string
	}{
		{fmt.Errorf("reading: %w", io.EOF), "the driver is gone"},
		{syscall.EPIPE, "the driver is gone: " + syscall.EPIPE.Error()},
	} {
		var e *command.Error
		if got := removed(c.cause); !errors.As(got, &e) || e.Code != command.Removed || e.Detail != c.want {
			t.Errorf("%v became %v, want %q", c.cause, got, c.want)
		}
	}
}
