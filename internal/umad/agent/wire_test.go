package agent

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// wire joins two ports with LIDs 1 and 2 by a network, which carries packets between them and back to themselves.
type wire struct {
	net  *sim.Network
	port [2]*Port
	seat [2]*sim.Port
	got  [2][]Message
	file [2]*File
	sent int
	lose func(n int, k *Packet) bool
}

func newWire() *wire {
	w := &wire{net: sim.New(1)}
	ids := &IDs{}
	for i := range w.port {
		w.port[i] = NewPort(ids)
		w.file[i] = w.port[i].Open(func(m *Message) {
			c := *m
			c.Data = bytes.Clone(m.Data)
			w.got[i] = append(w.got[i], c)
		})
		w.seat[i] = w.net.Add(at(ib.LID(i+1)), &carrier{w: w, Port: w.port[i], lid: ib.LID(i + 1)})
	}
	return w
}

func at(l ib.LID) netip.Addr { return frame.LIDAddr(l) }

// flow carries all packets that wait.
func (w *wire) flow() { w.until(0) }

// until lets time pass, with all that happens in it.
func (w *wire) until(d time.Duration) {
	for _, p := range w.seat {
		p.Wake()
	}
	w.net.Pass(d)
}

// carrier is a port as an engine of the network.
type carrier struct {
	*Port
	w     *wire
	lid   ib.LID
	route frame.Route
	bytes []byte
}

// Receive implements sim.Engine.
func (c *carrier) Receive(now clock.Time, in []frame.In) {
	for i := range in {
		var k Packet
		if _, err := binary.Decode(in[i].Data, binary.NativeEndian, &k); err != nil {
			panic(err)
		}
		c.Port.Receive(now, &k)
	}
}

// Transmit implements sim.Engine. A packet that is lost counts as sent.
func (c *carrier) Transmit(_ clock.Time, out []frame.Out) int {
	var k Packet
	for c.Port.Transmit(&k) {
		if c.w.sent++; c.w.lose != nil && c.w.lose(c.w.sent, &k) {
			continue
		}
		k.SLID = c.lid
		c.route = frame.Route{Src: at(c.lid), Dst: at(k.DLID)}
		c.bytes, _ = binary.Append(c.bytes[:0], binary.NativeEndian, &k)
		out[0].Reset(&c.route)
		out[0].Payload = c.bytes
		return 1
	}
	return 0
}
