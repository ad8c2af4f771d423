package hostside

import (
	"math/bits"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// pullMost is how many frames of a queue are read in one turn.
const pullMost = 128

// Pull hands frames of the host to the function, and asks a host that had no room again. It returns how many frames it has
// read; then the port is to have a turn.
func (s *Side) Pull(now clock.Time) (n int) {
	if s.f == nil {
		return 0
	}
	if now >= s.retry {
		s.again(now)
	}
	if s.groups.to != nil {
		s.hear(now)
	}
	if s.asleep {
		return 0
	}
	if s.scratch == nil {
		s.f.Collect(now) // who completes sends with the next ones waits for these
		if s.scratch = s.large.get(); s.scratch == nil {
			s.hold()
			return 0
		}
		s.resume()
	}
	for set := s.end.Ready(); set != 0; set &= set - 1 {
		q := bits.TrailingZeros64(set)
		got := s.pull(now, q)
		n += got
		if s.lanes.apart != nil {
			s.lanes.note(now, q, got)
		}
		if s.scratch == nil {
			break
		}
	}
	return n + s.pullThreads(now)
}

// pull reads frames of one queue.
func (s *Side) pull(now clock.Time, q int) int {
	for n := range pullMost {
		got := s.end.Read(q, s.scratch.b)
		if got == 0 {
			return n
		}
		s.counters.Read++
		s.take(now, s.scratch.b[:got])
		if s.scratch == nil {
			if s.scratch = s.large.get(); s.scratch == nil {
				return n + 1 // until the port has sent some, or else hold
			}
		}
	}
	return pullMost
}

// take posts a frame that is in scratch.
func (s *Side) take(now clock.Time, b []byte) {
	var t offload.Task
	if len(b) == len(s.scratch.b) {
		s.counters.BadHeaders++
		return
	}
	if s.end.Virtio() {
		parse := offload.ParseHeader
		if s.tunnels {
			parse = offload.ParseTunnelHeader
		}
		h, f, err := parse(b)
		if err == nil && h.Kind.InTunnel() {
			s.enclosed(now, h, f)
			return
		}
		if err != nil || !s.left(h, f, &t) {
			s.counters.BadHeaders++
			return
		}
		b = f
	}
	s.overhear(b)
	if t != (offload.Task{}) && s.finish(now, b, t) {
		return
	}
	s.post(now, b, t)
}

// enclosed posts a large frame in a tunnel, or cuts one that the function does not take so: GENEVE's, for example.
func (s *Side) enclosed(now clock.Time, h offload.Header, f []byte) {
	var e eth.Headers
	if !e.Parse(f) {
		s.counters.BadHeaders++
		return
	}
	s.overhear(f)
	if t, err := h.TaskOf(&e, f); err == nil && s.f.Takes(&ethernet.Send{Frame: f, Task: t}) == 0 {
		s.post(now, f, t)
		return
	}
	s.counters.Finished++
	s.cut(now, s.segments.BeginHeader(h, &e, f))
}

// left finds out what a virtio header leaves to do for a frame. It returns false for one that cannot be.
func (s *Side) left(h offload.Header, f []byte, t *offload.Task) bool {
	if h.Kind == offload.Whole && !h.NeedsChecksum {
		return true
	}
	var e eth.Headers
	if h.Kind == offload.UDP && !s.end.Datagrams() || !e.Parse(f) { // nobody has said that it may be
		return false
	}
	var err error
	if *t, err = h.Task(&e); err == nil || h.Kind != offload.Whole {
		return err == nil
	}
	// A checksum of another protocol, or inside a tunnel.
	if h.ChecksumStart < e.Network+eth.IPv4Len || h.ChecksumStart > len(f) {
		return false
	}
	*t = offload.Task{}
	h.ChecksumStart -= e.Network
	return offload.Complete(h, f[e.Network:]) == nil
}

// finish does what is left to do for a frame that the function does not take so. It returns false if it does take it.
func (s *Side) finish(now clock.Time, f []byte, t offload.Task) bool {
	switch s.f.Takes(&ethernet.Send{Frame: f, Task: t}) {
	case ethernet.NoTask, ethernet.FewSegments, ethernet.Options, ethernet.Long:
	default:
		return false
	}
	var e eth.Headers
	e.Parse(f)
	s.counters.Finished++
	if t.Kind == offload.Whole {
		offload.Make(t.Sums, &e, f)
		s.post(now, f, offload.Task{})
		return true
	}
	s.cut(now, s.segments.BeginFrame(t, &e, f))
	return true
}

// cut posts what the frame in scratch is cut into; err says why it cannot be.
func (s *Side) cut(now clock.Time, err error) {
	if err != nil {
		s.counters.BadHeaders++
		return
	}
	whole := s.scratch // which is cut
	for head, body, ok := s.segments.Next(); ok; head, body, ok = s.segments.Next() {
		if s.scratch = s.buffer(len(head) + len(body)); s.scratch == nil {
			break // the rest is lost
		}
		n := copy(s.scratch.b, head)
		n += copy(s.scratch.b[n:], body)
		s.post(now, s.scratch.b[:n], offload.Task{})
		if s.scratch != nil { // it was copied, or refused
			s.scratch.put()
		}
	}
	s.segments.End()
	s.scratch = whole
}

// buffer returns one for n bytes, nil if there is none left.
func (s *Side) buffer(n int) *buffer {
	if n <= smallSize {
		if b := s.small.get(); b != nil {
			return b
		}
	}
	return s.large.get()
}

// post posts a frame that is in scratch, which is then the function's; a short one is copied, so that scratch stays.
func (s *Side) post(now clock.Time, f []byte, t offload.Task) {
	b := s.scratch
	if len(f) <= smallSize && b.pool != &s.small {
		if small := s.small.get(); small != nil {
			b = small
			f = b.b[:copy(b.b, f)]
		}
	}
	q := s.f.QueueFor(f)
	if s.f.Send(now, q, &ethernet.Send{Frame: f, Task: t}) != nil { // which has counted it
		if b != s.scratch {
			b.put()
		}
		return
	}
	b.give(len(f))
	s.sends[q].push(b)
	if b == s.scratch {
		s.scratch = nil
	}
}
