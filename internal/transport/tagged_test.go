package transport

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/tagmatch"
)

// tagBed is a sender and a receiver with a matching list, and a model of what the receiver's program sees.
type tagBed struct {
	n          *sim.Network
	rng        *rand.Rand
	a, b       *end
	list       *tagmatch.List
	src, dst   []byte
	srcKey     uint32
	dstKey     uint32
	model      []tagmatch.Entry // active and in order: the list is always in sync when a buffer is added
	used       int              // of dst
	receives   []ring.RecvWR    // untagged, not taken
	unexpected uint32
	id         uint64
	want       []ring.CQE // of the receiver
}

const (
	tagSource, tagSink = 0x100000, 0x800000
	untagged           = 8192 // bytes of each receive
)

func newTagBed(t testing.TB, seed uint64) *tagBed {
	rng := rand.New(rand.NewPCG(seed, 7))
	n := sim.New(seed)
	n.Default = impairments(rng)
	s := &tagBed{n: n, rng: rng, list: tagmatch.New(8), src: pattern(1<<17, byte(seed)), dst: make([]byte, 4<<20)}
	s.a = newHost(t, n, "10.0.0.1", Config{}).qp(command.RC, QPConfig{SendCQ: 1, RecvCQ: 2})
	s.b = newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x100}).qp(command.RC, QPConfig{SendCQ: 3, RecvCQ: 4, SRQ: true, Tags: s.list})
	s.srcKey = s.a.region(tagSource, s.src, allowAll).Key
	s.dstKey = s.b.region(tagSink, s.dst, allowAll).Key
	c := defaultConnection()
	c.mtu = 256 << rng.IntN(5)
	c.depth = uint8(1 + rng.IntN(4))
	connect(s.a, s.b, c)
	return s
}

// buffer reserves n bytes of the receiver's memory, in up to count pieces.
func (s *tagBed) buffer(n, count int) (sges []ring.SGE) {
	for i := range count {
		k := n
		if i < count-1 {
			k = s.rng.IntN(n + 1)
		}
		sges = append(sges, ring.SGE{Addr: tagSink + uint64(s.used), Length: uint32(k), LKey: s.dstKey})
		s.used += k
		n -= k
	}
	return sges
}

func (s *tagBed) add() error {
	s.id++
	e := tagmatch.Entry{ID: s.id, Tag: uint64(s.rng.IntN(4)), Mask: []uint64{0, 1, 2, 3, ^uint64(0)}[s.rng.IntN(5)]}
	e.NumSGE = uint8(copy(e.SGE[:], s.buffer([]int{0, 20, 100, 6000}[s.rng.IntN(4)], 1+s.rng.IntN(3))))
	_, err := s.list.Add(&e)
	if err == nil {
		s.model = append(s.model, e)
	} else if len(s.model) < 8 {
		return err
	}
	return nil
}

// content returns n bytes at the pieces of the receiver's memory.
func (s *tagBed) content(sges []ring.SGE, n int) (b []byte) {
	for _, g := range sges {
		k := min(int(g.Length), n)
		b = append(b, s.dst[g.Addr-tagSink:][:k]...)
		n -= k
	}
	return b
}

// send sends one message and checks what becomes of it.
func (s *tagBed) send() error {
	kind := []tagmatch.Op{tagmatch.NoTag, tagmatch.Rendezvous, tagmatch.Rendezvous, tagmatch.Eager, tagmatch.Eager}[s.rng.IntN(5)]
	tag, app := uint64(s.rng.IntN(4)), s.rng.Uint32()
	match := slices.IndexFunc(s.model, func(e tagmatch.Entry) bool { return tag&e.Mask == e.Tag })
	if kind == tagmatch.NoTag {
		match = -1
	}
	size := []int{0, 10, 90, 5000}[s.rng.IntN(4)]
	if match >= 0 && kind == tagmatch.Eager {
		size = min(size, int(s.model[match].Room()))
	}
	message := s.src[:tagmatch.HeaderLen+size]
	tagmatch.Header(message).Encode(kind, app, tag)
	data := message[tagmatch.HeaderLen:]
	if kind == tagmatch.Rendezvous {
		off := 8192 + s.rng.IntN(1<<16)
		data = s.src[off : off+size]
		tagmatch.Where(s.src[tagmatch.HeaderLen:]).Encode(tagSource+uint64(off), s.srcKey, uint32(size))
		message = s.src[:tagmatch.HeaderLen+tagmatch.RendezvousLen+s.rng.IntN(100)]
	}
	expected := func(c ring.CQE) { c.Flags |= ring.ReceiveSide; s.want = append(s.want, c) }
	var where []ring.SGE
	put := data
	switch {
	case match < 0:
		w := s.receives[0]
		s.receives = s.receives[1:]
		c := ring.CQE{ID: w.ID, Op: ring.CQTagRecv, ByteLen: uint32(len(message))}
		if kind == tagmatch.NoTag {
			c.Op = ring.CQNoTag
		} else {
			s.unexpected++
		}
		expected(c)
		where, put = w.SGE[:w.NumSGE], message
	default:
		e := s.model[match]
		s.model = slices.Delete(s.model, match, match+1)
		where = e.SGE[:e.NumSGE]
		c := ring.CQE{ID: e.ID, Op: ring.CQTagRecv, Context: tag, SrcQP: app, Flags: ring.TagMatched}
		switch {
		case kind == tagmatch.Rendezvous && uint64(size) > e.Room():
			put = message[:min(32, int(e.Room()))]
			c.Status, c.ByteLen = ring.TagIncomplete, uint32(len(put))
			expected(c)
		case kind == tagmatch.Eager && len(message) <= s.b.q.mtu:
			c.Flags |= ring.TagData
			c.ByteLen = uint32(size)
			expected(c)
		default:
			expected(c)
			expected(ring.CQE{ID: e.ID, Op: ring.CQTagRecv, Flags: ring.TagData, ByteLen: uint32(size)})
		}
	}
	put = bytes.Clone(put)
	answer := bytes.Clone(message[:min(len(message), 32)])
	s.a.comps, s.b.comps = nil, nil
	fin := 0
	if match >= 0 && kind == tagmatch.Rendezvous && len(s.want) == 2 {
		fin = 1
	}
	s.a.post(ring.SendWR{ID: 1, Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1,
		SGE: [ring.MaxSGE]ring.SGE{{Addr: tagSource, Length: uint32(len(message)), LKey: s.srcKey}}})
	s.n.Run(s.n.Now()+second, func() bool { return len(s.a.comps) >= 1+fin && len(s.b.comps) >= len(s.want) })
	if err := s.completions(fin); err != nil {
		return fmt.Errorf("%v of %d bytes, match %d: %w", kind, size, match, err)
	}
	if got := s.content(where, len(put)); !bytes.Equal(got, put) {
		return fmt.Errorf("%d bytes arrive as\n% x, want\n% x", len(put), got[:min(len(got), 40)], put[:min(len(put), 40)])
	}
	if fin == 1 {
		answer[0] = byte(tagmatch.Fin)
		if got := s.src[1<<16+8192+5000:][:32]; !bytes.Equal(got, answer) {
			return fmt.Errorf("the answer is\n% x, want\n% x", got, answer)
		}
	}
	return nil
}

// completions compares what both have seen.
func (s *tagBed) completions(fin int) error {
	var got []ring.CQE
	for _, c := range s.b.comps {
		if c.CQ != 4 || c.QPN != s.b.q.num {
			return fmt.Errorf("completion %+v in CQ %d", c.CQE, c.CQ)
		}
		c.QPN, c.Timestamp = 0, 0
		got = append(got, c.CQE)
	}
	want := s.want
	s.want = nil
	if err := sameCompletions("receive", got, want); err != nil {
		return err
	}
	sent, answers := 0, 0
	for _, c := range s.a.comps {
		switch {
		case c.Status != ring.Success:
			return fmt.Errorf("the sender's %+v", c.CQE)
		case c.Op == ring.CQSend:
			sent++
		case c.ByteLen == 32:
			answers++
		}
	}
	if sent != 1 || answers != fin {
		return fmt.Errorf("the sender has %d completions and %d answers, want 1 and %d", sent, answers, fin)
	}
	return nil
}

// give posts receives at both ends, so that each always has some.
func (s *tagBed) give() {
	for len(s.receives) < 4 {
		s.id++
		w := ring.RecvWR{ID: s.id, NumSGE: 1}
		copy(w.SGE[:], s.buffer(untagged, 1))
		s.b.postRecv(w)
		s.receives = append(s.receives, w)
	}
	if n, _ := s.a.q.rq.Pending(); n == 0 {
		s.a.postRecv(ring.RecvWR{ID: 9, NumSGE: 1,
			SGE: [ring.MaxSGE]ring.SGE{{Addr: tagSource + 1<<16 + 8192 + 5000, Length: 64, LKey: s.srcKey}}})
	}
}

// TestTaggedPrograms runs random programs of tagged buffers and messages, over a network with faults: each message goes to
// the oldest buffer that it matches, and without one to a receive, whole; a rendezvous has its data read and its sender told;
// and every completion is what Documentation/tag_matching.md of rdma-core says.
func TestTaggedPrograms(t *testing.T) {
	for seed := range uint64(programs() / 4) {
		s := newTagBed(t, seed+1)
		for step := range 12 {
			s.give()
			var err error
			if s.list.Sync(s.unexpected); !s.list.InSync() {
				t.Fatalf("program %d: not in sync", seed+1)
			}
			if s.rng.IntN(2) == 0 {
				err = s.add()
			} else {
				err = s.send()
			}
			if err != nil {
				t.Fatalf("program %d, step %d: %v", seed+1, step, err)
			}
		}
		s.n.Run(s.n.Now()+second, func() bool { return s.b.q.req.outstanding == 0 })
		if q := s.b.q; q.req.outstanding != 0 || q.req.reads != 0 || q.extra.tags.moves.busy != 0 || q.extra.tags.moves.taken.len() != 0 {
			t.Fatalf("program %d: %d requests, %d reads, %d transfers are left", seed+1, q.req.outstanding, q.req.reads, q.extra.tags.moves.busy)
		}
	}
}

// TestTaggedRequestsOfItsOwn: what the program of a receiver sends itself goes between the reads of rendezvous, and completes
// as usual; and when the queue pair ends, so do both, each with its own completion.
func TestTaggedRequestsOfItsOwn(t *testing.T) {
	for _, rkey := range []uint32{0, 0x77777700} { // of the sender's data
		s := newTagBed(t, 3)
		s.n.Default.Loss = 0
		s.give()
		e := tagmatch.Entry{ID: 70, NumSGE: 1}
		copy(e.SGE[:], s.buffer(100, 1))
		if _, err := s.list.Add(&e); err != nil {
			t.Fatal(err)
		}
		tagmatch.Header(s.src).Encode(tagmatch.Rendezvous, 0, 5)
		if rkey == 0 {
			rkey = s.srcKey
		}
		tagmatch.Where(s.src[16:]).Encode(tagSource+8192, rkey, 100)
		write := ring.SendWR{ID: 80, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: tagSource + 4096, RKey: s.srcKey,
			SGE: [ring.MaxSGE]ring.SGE{{Addr: tagSink, Length: 8, LKey: s.dstKey}}}
		s.b.post(write)
		s.a.post(ring.SendWR{ID: 1, Op: ring.OpSend, NumSGE: 1,
			SGE: [ring.MaxSGE]ring.SGE{{Addr: tagSource, Length: 32, LKey: s.srcKey}}})
		s.n.Run(s.n.Now()+second, func() bool { return len(s.b.comps) >= 3 })
		s.b.post(write)
		s.n.Run(s.n.Now()+second, func() bool { return len(s.b.comps) >= 4 })
		status, end := ring.Success, ring.Success
		if rkey != s.srcKey {
			status, end = ring.RemoteAccess, ring.WRFlush
		}
		var got []string
		for _, c := range s.b.comps {
			got = append(got, fmt.Sprintf("%d %v %v %d", c.ID, c.Op, c.Status, c.Flags&(ring.TagData|ring.TagMatched)))
		}
		data := ring.TagData
		if status != ring.Success {
			data = 0
		}
		want := []string{"80 write success 0", fmt.Sprintf("70 tag receive success %d", ring.TagMatched),
			fmt.Sprintf("70 tag receive %v %d", status, data), fmt.Sprintf("80 write %v 0", end)}
		slices.Sort(got) // the two queues complete independently of each other
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("completions %q, want %q", got, want)
		}
	}
}
