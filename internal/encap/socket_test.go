package encap

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/udp"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/wire/ib"
)

var socketForms = map[string]udp.Config{
	"bursts":   {},
	"singly":   {NoSegmentation: true, NoCoalescing: true},
	"portable": {Portable: true},
}

// lengths makes bursts of several packets, a shorter last one, and single ones.
var lengths = []int{1024, 1024, 1024, 1024, 17, 0, 4, 4, 4, 256, 3}

// TestPacketsOpenBetweenSockets: between two real sockets every packet opens, and none needs its identification
// inferred: both sides foresee the same headers, and the places in the burst survive the kernel.
// TestICRCIsRightOnTheWire shows that the headers really are those.
func TestPacketsOpenBetweenSockets(t *testing.T) {
	for _, addr := range []netip.Addr{loopback.Addr(), netip.IPv6Loopback()} {
		for name, cfg := range socketForms {
			t.Run(fmt.Sprintf("%s/%v", name, addr.Is4()), func(t *testing.T) {
				cfg.Addr, cfg.Port = addr, loopback.Port()
				l, err := udp.Open(cfg)
				if err != nil {
					t.Skipf("no socket: %v", err)
				}
				defer l.Close()
				e, err := New(RoCEv2, []netip.Addr{addr}, l.Capabilities(), cfg.Port)
				if err != nil {
					t.Fatal(err)
				}
				r := &frame.Route{Src: addr, Dst: addr}
				if err := l.Prepare(r); err != nil {
					t.Fatal(err)
				}
				out := make([]frame.Out, len(lengths))
				for i, n := range lengths {
					fill(&out[i], r, bytes.Repeat([]byte{byte(i)}, n))
				}
				e.Seal(out)
				if n, err := l.Send(out); err != nil || n != len(out) {
					t.Fatalf("%d sent, %v", n, err)
				}
				got := 0
				in := make([]frame.In, 64)
				for wait := time.Now(); got < len(out) && time.Since(wait) < await.Limit; {
					n, err := l.Receive(in)
					if err != nil {
						t.Fatal(err)
					}
					for _, p := range in[:e.Open(in[:n])] {
						if want := lengths[got]; len(p.Data) != ib.BTHLen+(want+3)&^3 {
							t.Errorf("packet %d has %d bytes, payload %d was sent", got, len(p.Data), want)
						}
						got++
					}
				}
				if got != len(out) || e.Counters() != (Counters{}) {
					t.Errorf("%d of %d packets opened, %+v", got, len(out), e.Counters())
				}
			})
		}
	}
}
