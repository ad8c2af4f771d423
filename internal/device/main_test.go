package device

import (
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/leaks"
)

// TestMain has every turn look whether a function sleeps that should not.
func TestMain(m *testing.M) {
	audit = func(p *portLoop) {
		s := p.Overslept()
		if s == nil {
			return
		}
		i := slices.IndexFunc(p.functions, func(a *adapter) bool { return a.station == s })
		if i < 0 {
			panic("an Ethernet function sleeps though it has something to do")
		}
		panic("adapter " + p.functions[i].name + " sleeps though it has something to do")
	}
	leaks.Main(m)
}
