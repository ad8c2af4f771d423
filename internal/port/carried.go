package port

import "github.com/softvpi/softvpi/internal/frame"

// FrameCounters count frames, and their bytes. One of several segments counts as the frames that it is on a wire which takes none.
type FrameCounters struct {
	SentFrames, SentBytes         uint64
	ReceivedFrames, ReceivedBytes uint64
}

// Carried is what a station sends and receives by the links of its wires, and Inside what it exchanges with other stations of the
// wire. What it sends to a group leaves.
type Carried struct {
	Wire, Inside FrameCounters
}

// Plus returns the sums with another's.
func (c FrameCounters) Plus(o FrameCounters) FrameCounters {
	return FrameCounters{c.SentFrames + o.SentFrames, c.SentBytes + o.SentBytes, c.ReceivedFrames + o.ReceivedFrames,
		c.ReceivedBytes + o.ReceivedBytes}
}

// sent counts frames that stay inside, or those that do not.
func (c *FrameCounters) sent(out []frame.Out, inside bool) {
	for i := range out {
		if out[i].Inside == inside {
			frames, bytes := out[i].OnWire()
			c.SentFrames += uint64(frames)
			c.SentBytes += uint64(bytes)
		}
	}
}

func (c *FrameCounters) received(in []frame.In) {
	for i := range in {
		frames, bytes := in[i].OnWire()
		c.ReceivedFrames += uint64(frames)
		c.ReceivedBytes += uint64(bytes)
	}
}

// sent counts what a station hands out. A nil c counts nothing.
func (c *Carried) sent(out []frame.Out) {
	if c != nil {
		c.Wire.sent(out, false)
		c.Inside.sent(out, true)
	}
}

// sentOne is sent for one frame.
func (c *Carried) sentOne(o *frame.Out) {
	if c == nil {
		return
	}
	frames, bytes := o.OnWire()
	to := &c.Wire
	if o.Inside {
		to = &c.Inside
	}
	to.SentFrames += uint64(frames)
	to.SentBytes += uint64(bytes)
}

// handed counts what a station is given straight by another of the wire. A nil c counts nothing.
func (c *Carried) handed(out []frame.Out) {
	if c == nil {
		return
	}
	for i := range out {
		frames, bytes := out[i].OnWire()
		c.Inside.ReceivedFrames += uint64(frames)
		c.Inside.ReceivedBytes += uint64(bytes)
	}
}

// received counts what a station is given. A nil c counts nothing.
func (c *Carried) received(in []frame.In, inside bool) {
	switch {
	case c == nil:
	case inside:
		c.Inside.received(in)
	default:
		c.Wire.received(in)
	}
}
