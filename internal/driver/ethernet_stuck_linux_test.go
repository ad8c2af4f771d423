package driver

import (
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestEthernetStuck: a guest that does not read makes its receive queue one without progress, which an event of the adapter's
// generation says (WinOF-2 1.21, 5.5; WinOF 5.50, 4.10.1.1.1.1).
func TestEthernetStuck(t *testing.T) {
	for generation, want := range map[string]string{
		"mlx5": "ReceiveTimeout: port: receive queue 0 of function 0 ", "mlx4": "ReceiveSoftwareStuck: ",
	} {
		t.Run(generation, func(t *testing.T) {
			t.Parallel()
			cfg := overSockets(t)
			near, far := withGuest(t, &cfg[0], "02:00:00:00:00:01"), withGuest(t, &cfg[1], "02:00:00:00:00:02")
			cfg[0].Adapters[0].Generation = generation
			d, other := start(t, cfg[0]), start(t, cfg[1])
			defer stop(t, d)
			defer stop(t, other)
			set(t, d, "port", "SHCheckForHangTimeInSeconds", "1")
			set(t, d, "port", "CheckForHangCQMaxNoProgress", "1")
			await.Eventually(t, want, func() bool {
				far.send(t, far.frame(near.mac, "nobody reads this"))
				return slices.ContainsFunc(raised(t, d), func(e string) bool { return strings.HasPrefix(e, want) })
			})
			near.gets(t, "reads again", func() { far.send(t, far.frame(near.mac, "reads again")) })
		})
	}
}
