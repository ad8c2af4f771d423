package device

import (
	"math"
	"net"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/wait"
)

func TestRingCounters(t *testing.T) {
	var r RingCounters
	for _, b := range []struct {
		packets int
		polling bool
	}{{1, false}, {39, true}, {40, true}, {255, false}, {receiveBatch, true}} {
		r.received(b.packets, receiveBatch, b.polling)
	}
	want := RingCounters{
		InterruptPackets: 256, InterruptBatches: 2, PollingPackets: 79 + receiveBatch, PollingBatches: 3, FullBatches: 1, Transitions: 2,
		Sizes: [RingSizes]uint64{0: 2, 1: 1, 6: 2}, polling: true,
	}
	if r != want {
		t.Errorf("ring counters %+v, want %+v", r, want)
	}
}

// TestModeOfReceivedPackets: packets that a loop finds because it never sleeps are received in polling mode, and those
// that end its sleep in interrupt mode (WinOF 5.50, 5.5.3.10).
func TestModeOfReceivedPackets(t *testing.T) {
	const packets = 8
	for _, c := range []struct {
		name    string
		polling wait.Polling
		mode    func(*RingCounters) (in, other uint64)
	}{
		{"polling", wait.Polling{On: true, Rounds: math.MaxUint32, Average: 1000, Last: 1000}, func(r *RingCounters) (in,
			other uint64) {
			return r.PollingPackets, r.InterruptPackets
		}},
		{"asleep", wait.Polling{}, func(r *RingCounters) (in, other uint64) { return r.InterruptPackets, r.PollingPackets }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t, Config{Seed: 1, GIDInterval: -1, Spin: -1})
			addr := loopback.Addr()
			index := h.add(t, AdapterConfig{Addr: addr, Polling: c.polling})
			conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 4791)))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			until := func(what string, done func() bool) {
				t.Helper()
				locked := func() bool {
					h.lock()
					defer h.unlock()
					return done()
				}
				if !await.Until(locked) {
					t.Fatalf("%s: %+v", what, h.ports[index].rings)
				}
			}
			for n := range uint64(packets) {
				if c.polling.On { // more rounds than commands make: the loop's own thread is awake, and stays so
					until("the loop does not poll", func() bool { return h.adapters[index].emptyRounds() > 20 })
				} else {
					until("the loop does not sleep", h.sleep.asleep.Load)
				}
				if _, err := conn.Write([]byte("not a packet of RoCE")); err != nil {
					t.Fatal(err)
				}
				until("the packet is not counted in its mode", func() bool {
					in, other := c.mode(&h.ports[index].rings)
					return in == n+1 && other == 0
				})
			}
		})
	}
}
