package cm

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sim"
)

// carrier is a side as an engine of the network.
type carrier struct {
	w     *world
	side  *side
	port  *sim.Port
	out   [4]Datagram
	route [4]frame.Route
}

// Receive implements sim.Engine.
func (c *carrier) Receive(now clock.Time, in []frame.In) {
	for i := range in {
		c.side.e.Receive(now, in[i].Data, Peer{Local: c.side.addr, Remote: in[i].Src, QPN: 1})
	}
}

// Advance implements sim.Engine.
func (c *carrier) Advance(now clock.Time) { c.side.e.Advance(now) }

// Deadline implements sim.Engine.
func (c *carrier) Deadline() clock.Time { return c.side.e.Deadline() }

// Transmit implements sim.Engine.
func (c *carrier) Transmit(_ clock.Time, out []frame.Out) int {
	n := c.side.e.Transmit(c.out[:])
	for i := range c.out[:n] {
		c.route[i] = frame.Route{Src: c.side.addr, Dst: c.out[i].Remote}
		out[i].Reset(&c.route[i])
		out[i].Payload = c.out[i].MAD[:]
	}
	return n
}

// settle delivers the events to the programs.
func (c *carrier) settle(now clock.Time) {
	c.w.now = now
	for _, v := range c.side.events() {
		c.w.happened(c.side, v)
	}
}

// tasks is what the programs do later, as an engine of the network.
type tasks struct {
	port   *sim.Port
	agenda clock.Agenda[task]
}

type task struct {
	w  *world
	do func()
}

// Receive implements sim.Engine.
func (x *tasks) Receive(clock.Time, []frame.In) {}

// Transmit implements sim.Engine.
func (x *tasks) Transmit(clock.Time, []frame.Out) int { return 0 }

// Deadline implements sim.Engine.
func (x *tasks) Deadline() clock.Time { return x.agenda.Deadline() }

// Advance implements sim.Engine: it does what is due.
func (x *tasks) Advance(now clock.Time) {
	for k := x.agenda.Due(now); k != nil; k = x.agenda.Due(now) {
		k.Of.w.now = now
		k.Of.do()
		k.Of.w.wake()
	}
}

func (w *world) later(d time.Duration, do func()) {
	w.tasks.agenda.Set(&clock.Appointment[task]{Of: task{w, do}}, w.now.Add(d))
	w.tasks.port.Wake()
}

// wake gives the engines a turn after something was done to them.
func (w *world) wake() {
	for _, c := range w.carriers {
		c.port.Wake()
	}
}

// run lets time pass until nothing more can happen.
func (w *world) run() {
	w.wake()
	steps := 0
	w.net.Run(clock.Never-1, func() bool {
		if steps++; steps > 300_000 {
			w.t.Fatal("the world does not come to rest")
		}
		return false
	})
	w.now = w.net.Now()
}
