package scale

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the start of the programs that the tests run as processes of
// their own.
func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(runProgram(os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(m)
}

// full reports whether the sizes of the requirements are asked for.
func full() bool { return os.Getenv("SOFTVPI_SCALE") == "full" }

// size is what the full run uses and what the default run does.
func size(whole, reduced int) int {
	if full() {
		return whole
	}
	return reduced
}

// beside lets a test whose figures do not matter in the reduced run go on beside
// others there.
func beside(t *testing.T) {
	if !full() {
		t.Parallel()
	}
}
