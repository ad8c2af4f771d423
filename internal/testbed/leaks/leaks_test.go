package leaks

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// TestVerify: goroutines that end after a while are none that are left; of tests that have failed nothing more is said.
func TestVerify(t *testing.T) {
	for _, c := range []struct {
		name             string
		code, gone, want int // gone: after how many looks nothing is left
	}{{"none is left", 0, 0, 0}, {"some end late", 0, 50, 0}, {"some stay", 0, 1 << 30, 1}, {"a test has failed", 2, 1 << 30, 2}} {
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			find := func() error {
				if looks++; looks <= c.gone {
					return errors.New("a goroutine")
				}
				return nil
			}
			var said strings.Builder
			if got := verify(func() int { return c.code }, find, &said); got != c.want || (said.Len() > 0) != (got == 1) {
				t.Errorf("%s: exit status %d, want %d; it says %q", c.name, got, c.want, said.String())
			}
		})
	}
}
