package simulate

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
)

// parcel is a frame on its way from one shard to another.
type parcel struct {
	at   clock.Time
	node int32 // where it arrives, by its number in the shard
	port uint8
	kept uint16 // bytes, which are in the box
	more uint16 // bytes besides, which nobody keeps
}

// parcels are frames in the order in which they were sent.
type parcels struct {
	all   []parcel
	bytes []byte
	first clock.Time // when the first of them arrives
}

// box is the frames from one shard to another: those that are sent in this window, and those of the one before, which the other takes
// meanwhile.
type box struct {
	to     *shard
	sent   parcels
	before parcels
}

// exit is the end of a link that leads to another shard.
type exit struct {
	box  *box
	node int32
	port uint8
}

// away puts a frame that leaves the shard into its box.
func (h *shard) away(at clock.Time, from ethernet.End, f ethernet.Ref) {
	x := &h.exits[from.Node][from.Port]
	p := &x.box.sent
	n := len(p.bytes)
	p.bytes = h.Store.Append(p.bytes, f)
	kept := len(p.bytes) - n
	p.all = append(p.all, parcel{at: at, node: x.node, port: x.port, kept: uint16(kept), more: uint16(h.Store.Len(f) - kept)})
	p.first = clock.Min(p.first, at)
	h.Store.Drop(f)
}

// post hands over what was sent in a window, behind what has not been taken yet, and says when the first of it arrives; false: nothing
// was.
func (x *box) post() bool {
	if len(x.sent.all) == 0 {
		return false
	}
	if b := &x.before; len(b.all) > 0 { // it has not been taken yet
		b.all, b.bytes = append(b.all, x.sent.all...), append(b.bytes, x.sent.bytes...)
		b.first = clock.Min(b.first, x.sent.first)
	} else {
		x.sent, x.before = x.before, x.sent
	}
	x.sent.all, x.sent.bytes, x.sent.first = x.sent.all[:0], x.sent.bytes[:0], clock.Never
	return true
}

// collect takes what other shards have sent in the window before.
func (h *shard) collect() {
	for _, x := range h.feeds {
		p := &x.before
		b := p.bytes
		for i := range p.all {
			y := &p.all[i]
			f := h.Store.Put(b[:y.kept], int(y.more))
			b = b[y.kept:]
			h.Arrive(y.at, ethernet.End{Node: int(y.node), Port: int(y.port)}, f)
		}
		p.all, p.bytes = p.all[:0], p.bytes[:0]
	}
}
