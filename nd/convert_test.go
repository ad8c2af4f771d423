package nd

import (
	"errors"
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/verbs"
)

// ND_DEVICE_REMOVED comes with a reason, even if the underlying error has none.
func TestRemovalHasAReason(t *testing.T) {
	for _, err := range []error{&verbs.Error{Op: "PostRecv", Class: verbs.ErrRemoved}, fmt.Errorf("posting: %w",
		&verbs.Error{Class: verbs.ErrRemoved})} {
		got := fail("QueuePair.Receive", err)
		if want := "nd: QueuePair.Receive: ND_DEVICE_REMOVED: the adapter was disabled, or the driver ended"; got.Error() != want ||
			!errors.Is(got, ErrDeviceRemoved) {
			t.Errorf("%v is %q; want %q", err, got, want)
		}
	}
	if got := fail("CompletionQueue.Notify", &verbs.Error{Class: verbs.ErrRemoved,
		Detail: "the driver is gone"}); got.Error() != "nd: CompletionQueue.Notify: ND_DEVICE_REMOVED: the driver is gone" {
		t.Errorf("a reason that is there became %q", got)
	}
}
