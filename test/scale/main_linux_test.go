package scale

import (
	"os"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/leaks"
)

// TestMain also runs the programs that tests start as processes of their own.
func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(runProgram(os.Stdin, os.Stdout))
	}
	leaks.Main(m)
}

// full reports whether the sizes that the requirements name are asked for.
func full() bool { return os.Getenv("SOFTVPI_SCALE") == "full" }

// size returns the size for the full run, or that for the default run.
func size(whole, reduced int) int {
	if full() {
		return whole
	}
	return reduced
}

// beside lets a test run in parallel with others in the default run, where its figures do not matter.
func beside(t *testing.T) {
	if !full() {
		t.Parallel()
	}
}
