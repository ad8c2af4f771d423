// Package leaks ends a package's tests with a look at the goroutines that are left.
package leaks

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// Main runs the tests of a package, and fails if goroutines are left after those that succeed. Goroutines that end have as long for it
// as anything in tests: goleak alone waits for less than half a second, which a busy machine may keep them from a processor.
func Main(m *testing.M) {
	os.Exit(verify(m.Run, func() error { return goleak.Find() }, os.Stderr))
}

func verify(run func() int, find func() error, to io.Writer) int {
	code := run()
	var left error
	if code == 0 && !await.Until(func() bool { left = find(); return left == nil }) {
		_, _ = fmt.Fprintln(to, "goroutines are left:", left)
		return 1
	}
	return code
}
