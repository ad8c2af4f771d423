package udp

import (
	"os/exec"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestOpen_WhileProgramsStart: a link that was closed can be opened again at once, also while the process starts programs, which have
// copies of its sockets until they begin.
func TestOpen_WhileProgramsStart(t *testing.T) {
	systemtest.Mark(t)
	systemtest.Programs(t, "true")
	var starting sync.WaitGroup
	defer starting.Wait()
	over := make(chan struct{})
	defer close(over)
	for range 4 {
		starting.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					_ = exec.Command("true").Run()
				}
			}
		})
	}
	cfg := Config{Addr: loopback.Addr()}
	for n := range 40 {
		l, err := Open(cfg)
		if err != nil {
			t.Fatalf("time %d: %v", n, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
