package links

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/link/memlink"
)

// meter is a wire of whole frames that counts what it gets, of RDMA functions and of Ethernet functions.
type meter struct {
	link.Link
	rdma, ethernet struct{ frames, bytes int }
}

func (m *meter) Capabilities() link.Capabilities {
	c := m.Link.Capabilities()
	c.Raw = true
	return c
}

func (m *meter) Send(frames []frame.Out) (int, error) {
	for i := range frames {
		of := &m.rdma
		if !frames[i].Route.Dst.IsValid() {
			of = &m.ethernet
		}
		of.frames++
		of.bytes += frames[i].Len()
	}
	return len(frames), nil
}

// TestLimit_Carries: a limited wire carries no more than its speed, and nearly that, of RDMA and Ethernet frames of all lengths
// together, with
// preamble, FCS and gap (IEEE 802.3: 24 bytes a frame); an impairment with a smaller rate limits further, one with a larger not.
func TestLimit_Carries(t *testing.T) {
	const gap = 24
	for _, c := range []struct{ limit, rate, want uint64 }{
		{10e9, 0, 10e9}, {100e9, 0, 100e9}, {25e9, 1e9, 1e9}, {25e9, 40e9, 25e9},
	} {
		inner, err := memlink.NewSwitch().Port(memlink.PortConfig{Addr: netip.MustParseAddr("10.0.0.1")})
		if err != nil {
			t.Fatal(err)
		}
		m, now := &meter{Link: inner}, clock.Time(0)
		cfg := config(netip.MustParseAddr("10.0.0.1"))
		cfg.Given, cfg.Limit, cfg.Now = m, c.limit, func() clock.Time { return now }
		s := open(t, cfg)
		if !s.Slowed() {
			t.Error("connections may leave the wire out")
		}
		s.SetImpairment(impair.Impairment{Rate: c.rate})
		to := &frame.Route{Dst: netip.MustParseAddr("10.0.0.2")}
		out := make([]frame.Out, 8)
		for i := range out {
			if out[i].Reset(to); i%2 == 1 {
				out[i].Reset(&frame.Route{}) // a host's
			}
			out[i].HeadEnd += 58
			out[i].Payload = make([]byte, i*580)
		}
		const span = 20 * time.Millisecond
		for at := 0; now < clock.Time(span); now = now.Add(10 * time.Microsecond) {
			for n := 1; n > 0; at = (at + n) % len(out) {
				if n, err = s.addresses[0].Send(out[at:]); err != nil {
					t.Fatal(err)
				}
			}
			r, e := m.rdma, m.ethernet
			took := uint64(r.bytes+e.bytes+gap*(r.frames+e.frames)) * 8
			if most := c.want * uint64(now) / uint64(time.Second); took > most+8*10e3 {
				t.Fatalf("%+v: %d bits in the first %v, want at most %d", c, took, time.Duration(now), most)
			} else if float64(took) < 0.999*float64(most)-8*10e3 {
				t.Fatalf("%+v: only %d bits in the first %v, of %d", c, took, time.Duration(now), most)
			}
		}
		if r, e := m.rdma.frames, m.ethernet.frames; r < e-8 || e < r-8 {
			t.Errorf("%+v: %d RDMA frames and %d of Ethernet functions", c, r, e)
		}
	}
}
