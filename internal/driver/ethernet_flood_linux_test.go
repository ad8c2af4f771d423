package driver

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestEthernetFlood: a guest that floods and one that does not read harm nobody else: RDMA on the same ports goes on, what the one
// does not take is lost and counted, in bounded memory, and both work when they behave again.
func TestEthernetFlood(t *testing.T) {
	cfg := overSockets(t)
	near, far := withGuest(t, &cfg[0], "02:00:00:00:00:01"), withGuest(t, &cfg[1], "02:00:00:00:00:02")
	d, other := start(t, cfg[0]), start(t, cfg[1])
	defer stop(t, d)
	defer stop(t, other)
	near.gets(t, "before", func() { far.send(t, far.frame(near.mac, "before")) })
	across(t, end{d, 0}, end{other, 0}) // finds the neighbours: of the few frames that ask for one, the flood may leave none
	ended, stopping := make(chan error), make(chan struct{})
	go func() { // near reads nothing
		frame, to := long(far.frame(near.mac, "flood"), 1514), &net.UnixAddr{Name: far.path, Net: "unixgram"}
		for {
			select {
			case <-stopping:
				ended <- nil
				return
			default:
			}
			_ = far.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := far.WriteToUnix(frame, to); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				ended <- err
				return
			}
		}
	}()
	count := func(name string) uint64 { return d.Status().Adapters[0].Ethernet.Counters[name] }
	await.Eventually(t, "frames are lost", func() bool { return count("dropped_buffer_frames") > 100 })
	across(t, end{d, 0}, end{other, 0})
	across(t, end{other, 0}, end{d, 0})
	if count("host_blocked") == 0 {
		t.Error("the guest that does not read has room")
	}
	close(stopping)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := far.SetWriteDeadline(time.Time{}); err != nil { // that of the last frame of the flood may be over before the next
		t.Fatal(err)
	}
	near.gets(t, "behaves again", func() { far.send(t, far.frame(near.mac, "behaves again")) })
	far.gets(t, "the other way", func() { near.send(t, near.frame(far.mac, "the other way")) })
}
