package client_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// logText collects a log.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// paths returns how many QPs use which path.
func paths(h *device.Host) map[uint32]int {
	n := map[uint32]int{}
	for _, a := range h.Snapshot().Adapters {
		for _, q := range a.QPs {
			n[q.Path]++
		}
	}
	return n
}

// TestConnectionsWithoutDescriptors: wherever the descriptors of a program run out, connections carry their data: on the
// driver's path if there are too few for the direct one, which the log then says. No program is disconnected.
func TestConnectionsWithoutDescriptors(t *testing.T) {
	const direct = 3
	// A program needs three for itself, and for the direct path also those of its key table and of its arena.
	for each := uint64(3); each < 9; each++ {
		t.Run(fmt.Sprint(each), func(t *testing.T) {
			ctx := testbed.Context(t)
			addrs := testbed.Addrs()
			log := new(logText)
			socket, host := testbed.DriverWith(
				t,
				addrs,
				server.Config{ProgramDescriptors: each, Log: slog.New(slog.NewTextHandler(log, nil))},
			)
			server := get(newEnd(ctx, socket, addrs[0], 1<<20, true))(t)
			defer server.host.Close()
			client := get(newEnd(ctx, socket, addrs[1], 1<<20, true))(t)
			defer client.host.Close()
			connect(t, ctx, server, client, addrs[0])
			exercise(t, ctx, server, client)
			more := get(
				server.qp.PD().
					CreateQP(verbs.QPConfig{Type: verbs.RC, SendCQ: server.cq, RecvCQ: server.cq, SendDepth: 4096, RecvDepth: 4096,
						SendSGE: 8, RecvSGE: 8}),
			)(
				t,
			)
			exercise(t, ctx, server, client) // rings in another arena do not matter
			ok(t, more.Close())
			scarce := each < 5
			if n := paths(host)[direct]; scarce && n != 0 {
				t.Errorf("%d connections are on the direct path", n)
			}
			if said := log.String(); scarce && !strings.Contains(said, "direct path") && !strings.Contains(said, "driver's path") ||
				strings.Contains(said, "disconnected") {
				t.Errorf("the log says %q", said)
			}
		})
	}
}
