package station

import (
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// Parts cuts a large frame that a link is to send, for one whose system does not take it as it is, because it is in a tunnel. The zero
// value is ready.
type Parts struct {
	cut    offload.Segments
	joined []byte
}

// Begin begins to cut a frame, and keeps a copy. It returns false for one that cannot be cut.
func (p *Parts) Begin(o *frame.Out) bool {
	p.joined = append(append(append(p.joined[:0], o.Head[o.HeadStart:o.HeadEnd]...), o.Payload...), o.Tail[:o.TailLen]...)
	var h eth.Headers
	if !h.Parse(p.joined) || p.cut.BeginFrame(o.Task, &h, p.joined) != nil {
		p.cut.End()
		return false
	}
	return true
}

// Next returns the next part: its headers, valid until the next call, and its payload, until Begin. ok is false after the last.
func (p *Parts) Next() (head, body []byte, ok bool) { return p.cut.Next() }

// Fill makes frames of the next parts, as many as there is space for, and returns their number.
func (p *Parts) Fill(out []frame.Out) (n int) {
	for n < len(out) {
		head, body, ok := p.cut.Next()
		o := &out[n]
		if !ok || len(head) > len(o.Head) { // longer ones than there are
			p.cut.End()
			break
		}
		o.Reset(nil)
		o.HeadStart, o.HeadEnd, o.Payload = 0, uint16(copy(o.Head[:], head)), body
		n++
	}
	return n
}
