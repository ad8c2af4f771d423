package ethernet

import (
	"math/bits"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// A receive ring that is filled to one part in xoffPart makes the port ask the other end to pause the priorities of the frames in it
// (WinOF-2 1.21, 3.4.5.1: "when its received queue reaches a predefined limit"), until it is down to one in xonPart. What is beyond is
// headroom for frames that are on their way.
const (
	xoffPart = 2
	xonPart  = 4
)

// Take implements port.Waiter: frames for whose queue there is no room stay where they are, and those behind them.
func (f *Function) Take(now clock.Time, in []frame.In) (n int, queue uint32) {
	for n < len(in) {
		q, fits := f.fits(now, &in[n])
		if !fits {
			queue = uint32(q)
			break
		}
		f.take(now, &in[n])
		n++
	}
	for set := f.touched; set != 0; set &= set - 1 {
		q := bits.TrailingZeros64(set)
		f.flush(now, q)
		f.receive[q].batch = 0
	}
	f.touched = 0
	return n, queue
}

// fits reports whether there is room for a frame in the ring of its queue, beside those of the batch that is being received: the
// host may take none of these.
func (f *Function) fits(now clock.Time, in *frame.In) (q int, fits bool) {
	var h eth.Headers
	if f.asleep || !h.Parse(in.Data) {
		return 0, true
	}
	q = f.first
	if hash, kind := f.hashOf(f.innerOf(&h, in.Data, in.Task.Kind), in.Data); kind != 0 {
		q = f.table.Queue(hash)
	}
	r := &f.receive[q]
	need := 1
	if in.Task.Kind != offload.Whole && !f.takesLarge(h.Version) {
		frames, _ := in.OnWire()
		need = min(frames, f.cfg.ReceiveBuffers) // one that is cut into more than the ring has room for has to have all of it
	}
	if r.batch+need > r.ring.Room() && r.batch > 0 {
		f.flush(now, q)
		r.join.Reset()
		r.batch = 0
	}
	if need > r.ring.Room() {
		return q, false
	}
	r.batch += need
	return q, true
}

// Filled implements port.Filler.
func (f *Function) Filled() (priorities uint8) {
	for i := range f.receive {
		r := &f.receive[i]
		switch n := r.ring.Len(); {
		case n >= f.cfg.ReceiveBuffers/xoffPart:
			r.filled = true
		case n <= f.cfg.ReceiveBuffers/xonPart:
			r.filled = false
		}
		if !r.filled {
			continue
		}
		for p, n := range r.kept {
			if n > 0 {
				priorities |= 1 << p
			}
		}
	}
	return priorities
}

// Stands implements port.Filler.
func (f *Function) Stands() (waits bool, taken uint64) {
	for i := range f.receive {
		r := &f.receive[i]
		waits = waits || r.full && r.ring.Len() > 0
		taken += r.c.PacketsDPC + r.c.PacketsThread
	}
	return waits, taken
}
