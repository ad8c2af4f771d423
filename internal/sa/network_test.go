package sa

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// asker is a client as an engine of a network.
type asker struct {
	*Client
	lid   ib.LID
	out   [5]Datagram
	route [5]frame.Route
}

// Receive implements sim.Engine.
func (k *asker) Receive(now clock.Time, in []frame.In) {
	for i := range in {
		k.Client.Receive(now, in[i].Data)
	}
}

// Transmit implements sim.Engine.
func (k *asker) Transmit(_ clock.Time, out []frame.Out) int {
	n := k.Client.Transmit(k.out[:])
	for i := range k.out[:n] {
		k.route[i] = frame.Route{Src: frame.LIDAddr(k.lid), Dst: frame.LIDAddr(k.out[i].DLID)}
		out[i].Reset(&k.route[i])
		out[i].Payload = k.out[i].MAD[:]
	}
	return n
}

// manager is a subnet administration that answers everything, as an engine of a network.
type manager struct {
	t       rapid.TB
	lid     ib.LID
	answers [][]byte
	to      []netip.Addr
	route   frame.Route
}

// Receive implements sim.Engine.
func (m *manager) Receive(_ clock.Time, in []frame.In) {
	for i := range in {
		q, err := mad.ParseSA(in[i].Data)
		if err != nil {
			m.t.Fatal(err)
		}
		m.answers, m.to = append(m.answers, respond(q, 0, nil)), append(m.to, in[i].Src)
	}
}

// Transmit implements sim.Engine.
func (m *manager) Transmit(_ clock.Time, out []frame.Out) int {
	if len(m.answers) == 0 {
		return 0
	}
	m.route = frame.Route{Src: frame.LIDAddr(m.lid), Dst: m.to[0]}
	out[0].Reset(&m.route)
	out[0].Payload = m.answers[0]
	m.answers, m.to = m.answers[1:], m.to[1:]
	return 1
}

// Advance implements sim.Engine.
func (m *manager) Advance(clock.Time) {}

// Deadline implements sim.Engine.
func (m *manager) Deadline() clock.Time { return clock.Never }

// Every request is answered exactly once, whatever is lost, late or duplicated, and whichever manager there is.
func TestEveryRequestIsAnsweredOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := New(Config{Timeout: time.Second, Retries: rapid.IntRange(1, 3).Draw(t, "retries")})
		if err != nil {
			t.Fatal(err)
		}
		n := sim.New(rapid.Uint64().Draw(t, "seed"))
		share := rapid.Float64Range(0, 0.5)
		n.Default = impair.Impairment{Loss: share.Draw(t, "loss"), Duplicate: share.Draw(t, "duplicate"), Reorder: share.Draw(t, "reorder"),
			Delay:     rapid.SampledFrom([]time.Duration{0, time.Millisecond, 400 * time.Millisecond, 1500 * time.Millisecond}).Draw(t, "delay"),
			Jitter:    rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "jitter"),
			ReorderBy: 5 * time.Second}
		port := n.Add(frame.LIDAddr(9), &asker{Client: c, lid: 9})
		for lid := range ib.LID(2) {
			n.Add(frame.LIDAddr(lid+1), &manager{t: t, lid: lid + 1})
		}
		open := map[Ticket]bool{}
		port.Settle = func(clock.Time) {
			for _, a := range answers(c) {
				if !open[a.Ticket] {
					t.Fatalf("ticket %d is answered twice, or was never given", a.Ticket)
				}
				delete(open, a.Ticket)
			}
		}
		c.SetManager(3, 0) // nobody is there
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				k, err := c.Ask(n.Now(), Path(ib.GID{}, ib.GID{}, 0))
				if err != nil {
					t.Fatal(err)
				}
				open[k] = true
			case 2:
				n.Pass(rapid.SampledFrom([]time.Duration{0, 1, time.Second, 5 * time.Second}).Draw(t, "time"))
			case 3:
				c.SetManager(ib.LID(rapid.IntRange(0, 3).Draw(t, "manager")), 0)
			}
			port.Wake()
		}
		n.Run(clock.Never-1, nil)
		if len(open) != 0 || len(c.pending) != 0 {
			t.Fatalf("%d requests have no answer and %d are kept, want none", len(open), len(c.pending))
		}
	})
}
