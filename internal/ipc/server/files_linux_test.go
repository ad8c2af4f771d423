package server

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

// TestFewOpenFiles: how many descriptors are kept for the direct path, and how many are for programs and channels, follows
// from how many the process may have; a new descriptor's number tells that there are too many.
func TestFewOpenFiles(t *testing.T) {
	for limit, want := range map[uint64]openFiles{
		64: {kept: 48, last: 58}, 1024: {kept: 768, last: 992}, 1 << 20: {kept: 786432, last: 1015808},
	} {
		o := newOpenFiles(limit)
		if o.kept != want.kept || o.last != want.last || cap(o.passing) < 1 {
			t.Errorf("of %d: %d and %d, want %d and %d", limit, o.kept, o.last, want.kept, want.last)
		}
		if o.full(o.last-1, o.last, "it") != nil || !errors.Is(o.full(o.last, o.last, "it"), &command.Error{Code: command.Exhausted}) {
			t.Errorf("of %d: the limit is not at %d", limit, o.last)
		}
	}
}
