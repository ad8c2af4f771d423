package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
