package driver

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// said keeps what a driver logs.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) has(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), what)
}

// TestIPoIBEndsBeforeItsAdapter: when an adapter restarts its IPoIB interface ends first, leaves its groups while there is a port, and
// finds nothing gone; it is up again afterwards.
func TestIPoIBEndsBeforeItsAdapter(t *testing.T) {
	t.Parallel()
	var log said
	d, err := Start(context.Background(), twoCables(t), Options{Version: "test", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, d)
	for range 2 {
		f := connectionOf(t, d, 0, "left")
		if err := d.RestartAdapter("left"); err != nil {
			t.Fatal(err)
		}
		await.Eventually(t, "another interface is up", func() bool {
			g := d.ipoib.find(0, "left")
			return g != nil && g != f && stateText(g.Status().State, true) == "up"
		})
	}
	if log.has("queue pair: ") {
		t.Errorf("the driver has logged %s", log.text.String())
	}
}
