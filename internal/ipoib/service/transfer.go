package service

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/offload"
)

// batchLen is how many datagrams are sent or received at once. A large packet is 16 of the largest.
const batchLen = 32

// receive handles what the queue pair received.
func (i *Interface) receive(batch []ipoib.Arrival) {
	var few [batchLen][]byte
	packets := few[:0]
	p := i.port
	p.mu.Lock()
	now := p.now()
	for k := range batch {
		if b := i.engine.Receive(now, &batch[k]); b != nil {
			packets = append(packets, b)
		}
	}
	i.drain(now)
	p.mu.Unlock()
	if i.system == nil || len(packets) == 0 {
		return
	}
	c := i.deliver(now, packets)
	p.mu.Lock()
	i.carried.SystemRefused += c.SystemRefused
	i.carried.ChecksumErrors += c.ChecksumErrors
	i.carried.Joined += c.Joined
	i.carried.JoinedBytes += c.JoinedBytes
	i.carried.JoinAborts += c.JoinAborts
	i.carried.Coalesced += c.Coalesced
	p.mu.Unlock()
}

// deliver passes packets to the system, with TCP segments coalesced.
func (i *Interface) deliver(now clock.Time, packets [][]byte) (c ipoib.Carried) {
	i.join.Reset()
	for _, b := range packets {
		i.join.Add(b)
	}
	c.ChecksumErrors, c.JoinAborts = uint64(i.join.Wrong()), uint64(i.join.Aborts())
	list := i.join.Packets()
	for n := range list {
		x := &list[n]
		if len(x.Parts) > 1 {
			c.Joined++
			c.JoinedBytes += uint64(x.Len())
			c.Coalesced += uint64(len(x.Parts))
			i.joining.Joined(now, x)
		}
		if i.system.Write(x.Header, x.Parts) != nil {
			c.SystemRefused += uint64(len(x.Parts))
		}
	}
	return c
}

// Send accepts IP packets from the system.
func (i *Interface) Send(packets [][]byte) {
	for _, b := range packets {
		i.take(offload.Header{}, b)
	}
	i.idle()
}

// take accepts a packet from the system, with the offloads that the system has left to be done.
func (i *Interface) take(h offload.Header, packet []byte) {
	i.port.mu.Lock()
	defer i.port.mu.Unlock()
	switch {
	case h.Kind != offload.Whole:
		i.cut(h, packet)
	case !h.NeedsChecksum:
		i.send(packet, nil)
	case offload.Complete(h, packet) == nil: // the system produces no other kind
		i.carried.ChecksumsMade++
		i.send(packet, nil)
	}
}

// send sends a packet in two pieces, of which the first holds the headers, and reports whether another one
// can go the same way.
func (i *Interface) send(head, body []byte) (same bool) {
	now := i.port.now()
	to, ok := i.engine.SendPieces(now, head, body)
	if !ok {
		i.drain(now)
		return false
	}
	i.to = to
	i.header, _ = ipoib.HeaderOf(head)
	i.qp.Send(&i.to, i.header[:], head, body)
	return true
}

// cut sends the segments of a large packet. Those after the first go the same way; if there is no path
// yet, each waits for one.
func (i *Interface) cut(h offload.Header, packet []byte) {
	if i.segments.Begin(h, packet) != nil {
		return
	}
	i.carried.LargeSends++
	same := false
	for head, body, ok := i.segments.Next(); ok; head, body, ok = i.segments.Next() {
		i.carried.Segments++
		switch {
		case !same:
			same = i.send(head, body)
		case i.engine.SendMore(len(head) + len(body)):
			i.qp.Send(&i.to, i.header[:], head, body)
		}
	}
}

// idle starts sending what take has queued.
func (i *Interface) idle() {
	i.port.mu.Lock()
	defer i.port.mu.Unlock()
	i.qp.Flush()
	i.drain(i.port.now())
}
