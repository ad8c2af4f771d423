package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/leaks"
)

// TestMain has every turn look whether a function sleeps that should not.
func TestMain(m *testing.M) {
	audit = true
	leaks.Main(m)
}
