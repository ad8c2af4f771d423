package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// minExpected is how many packets a message has that is worth expecting.
const minExpected = 8

// Expected says which packets come next, most likely, and where their payloads belong:
// those of the RDMA write or read response that the QP is in the middle of which the
// last packet received was for, none where another such message is to follow. It returns
// the route to their sender; nil where nothing can be said.
//
// What is expected ends before the last packet of the message, whose last bytes are to
// become visible last, and may be written to before the packets have come: the content of
// the memory of a message is undefined until it is complete (IBA 9.5). The length of
// a send is not known ahead, and behind its end there must be nothing written to.
func (e *Engine) Expected(x *frame.Expected) *frame.Route {
	q := e.received
	if q == nil || q.typ != command.RC || q.peer != nil || q.state < command.RTR || q.state == command.Err {
		return nil
	}
	x.QPN, x.Size = uint32(q.num), q.mtu
	var more bool
	switch op := e.receivedOp; {
	case op.IsWrite():
		more = q.expectWrite(x)
	case op.IsReadResponse():
		more = q.expectAnswer(x)
	}
	if !more {
		return nil
	}
	return q.route
}

// expectWrite is about what is left of the write that the responder is in the middle of.
func (q *QP) expectWrite(x *frame.Expected) bool {
	s := &q.resp
	if s.reorder.count > 0 {
		return false // those that are kept will be placed there when their turn comes
	}
	if s.msg != msgWrite {
		x.Memory = nil
		return s.msg == msgNone && uint64(s.write.length) >= minExpected*uint64(q.mtu)
	}
	n := q.fullPackets(s.write.left)
	span, err := q.writeSpan()
	if err != nil || n == 0 || span.Region.Dead() || !q.settled() {
		return false
	}
	x.Opcode, x.PSN, x.Memory = uint8(ib.RCWriteMiddle), uint32(s.psn), span.Region.Slice(span.Addr, n)
	return x.Memory != nil
}

// expectAnswer is about what is left of the answer to the READ request on the wire that
// the requester is in the middle of.
func (q *QP) expectAnswer(x *frame.Expected) bool {
	r, psn := q.awaited()
	if r == nil || r.kind != kindRead || r.packets < minExpected {
		return false
	}
	idx := uint32(psn.Diff(r.first))
	if idx%readChunk == 0 {
		x.Memory = nil
		return true
	}
	off := uint64(idx) * uint64(q.mtu)
	left := min(r.length, uint64(idx-idx%readChunk+readChunk)*uint64(q.mtu)) - off
	n := q.fullPackets(left)
	if n == 0 {
		return false
	}
	x.Opcode, x.PSN, x.Memory = uint8(ib.RCReadResponseMiddle), uint32(psn), r.mem.piece(off, n)
	return x.Memory != nil
}

// fullPackets is the bytes of left that come before the last packet.
func (q *QP) fullPackets(left uint64) uint64 {
	if left == 0 {
		return 0
	}
	return (left - 1) / uint64(q.mtu) * uint64(q.mtu)
}
