package udp

import (
	"net/netip"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/kernel"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// ringSize is twice what may be in flight to a destination, two windows of 512 packets of 4 KB
	// (transport). What is overwritten has arrived then, or was lost.
	ringSize = 4 << 20
	// ringsMost is how many destinations have rings. One that sent no burst while the others sent
	// idleBursts yields its ring to another destination.
	ringsMost  = 8
	idleBursts = 4096
	// stageLeast is the minimum size in bytes of a burst that is spliced. Splicing takes three system
	// calls; several copied bursts take one.
	stageLeast = 16 << 10
	// A burst has at most pagesMost pages: an empty pipe takes no more, and one packet of the system has
	// hardly more fragments (MAX_SKB_FRAGS).
	pageSize  = 4 << 10
	pagesMost = 16
	lineSize  = 64 // of the processor's caches
)

// stage is memory from which the system sends without copying: a burst is moved to a pipe (vmsplice), and
// from there to the socket (splice), which passes pages on since Linux 6.5 (MSG_SPLICE_PAGES). They stay
// in use until the packet is gone: until its receiver has read it, if that is on this host.
//
// Nothing reports when that is. So each destination has a ring of its own, longer than what may be in
// flight to it: a packet that is even later finds its place overwritten by later packets to the same
// destination, or parts of them, whose ICRC is then wrong. They are never those of another destination.
type stage struct {
	able  bool // supported by the system
	rings []*stageRing
	now   *stageRing // ring of the burst being staged; nil: it is not staged
	next  uint16     // the segment that continues it
	turn  uint64     // bursts so far
	pipe  [2]int     // read end, write end; noPipe: not open yet
}

type stageRing struct {
	dst     netip.Addr
	memory  []byte
	at      int
	limit   int    // where the burst being staged has to end
	turn    uint64 // of its last burst
	refused bool   // the system refused a burst from here
}

// noPipe is a pipe that is not open.
var noPipe = [2]int{-1, -1}

// init determines whether bursts may be staged and returns the result.
func (s *stage) init(gso bool) bool {
	s.able = gso && ib.CopiesICRC && kernel.AtLeast(6, 5) // which passes pipe pages on in UDP packets
	return s.able
}

// Stage implements link.Stager.
func (l *socketLink) Stage(o *frame.Out, n int) []byte {
	s := &l.stage
	if o.Segment == 0 {
		w := l.pool.path(o.Route)
		s.begin(o.Route, w != nil && w.single, n)
	} else if o.Segment != s.next {
		s.now = nil // the burst has a packet that is not staged
	}
	if s.now == nil {
		return nil
	}
	r := s.now
	from := r.at
	if from+n > r.limit { // a shorter packet behind as many as place reckoned with
		s.now = nil
		return nil
	}
	r.at += n
	s.next = o.Segment + 1
	return r.memory[from:r.at] // up to the end of the ring, because the rest of the burst follows
}

// begin finds the place of a burst, whose first packet has n bytes; single says that there are none to its destination.
// What this loop itself will receive is not staged: the system's copy then stays within the near cache, where the
// receiver's copy finds it.
func (s *stage) begin(to *frame.Route, single bool, n int) {
	s.now = nil
	if !s.able || to.Near || single || to.Dst.IsMulticast() {
		return
	}
	s.turn++
	r := s.ring(to.Dst)
	if r == nil || r.refused {
		return
	}
	r.turn = s.turn
	r.at = r.place(n * min(maxSegments, maxBurst/n))
	r.limit = min(r.at&^(pageSize-1)+pagesMost*pageSize, len(r.memory))
	s.now = r
}

// place returns the offset of the next burst, of at most this many bytes in packets of equal length: close behind the
// previous one, because the copy of a packet into the ring prefetches what follows it.
func (r *stageRing) place(most int) int {
	at := (r.at + lineSize - 1) &^ (lineSize - 1)
	if at%pageSize+most > pagesMost*pageSize {
		at = (at + pageSize - 1) &^ (pageSize - 1)
	}
	if at+most > len(r.memory) {
		return 0
	}
	return at
}

// ring returns the ring of a destination, nil if it gets none.
func (s *stage) ring(dst netip.Addr) *stageRing {
	oldest := 0
	for i, r := range s.rings {
		if r.dst == dst {
			return r
		}
		if r.turn < s.rings[oldest].turn {
			oldest = i
		}
	}
	full := len(s.rings) == ringsMost
	if full && s.turn-s.rings[oldest].turn < idleBursts {
		return nil
	}
	// Memory used for another destination may still be in flight there.
	memory, err := unix.Mmap(-1, 0, ringSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		s.able = false
		return nil
	}
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // without huge pages, small ones do
	r := &stageRing{dst: dst, memory: memory}
	// Frames that are never sent, and a Stage concurrent with Close, may still refer to it.
	runtime.AddCleanup(r, func(m []byte) { _ = unix.Munmap(m) }, memory)
	if full {
		s.rings[oldest].empty()
		s.rings[oldest] = r
		return r
	}
	s.rings = append(s.rings, r)
	return r
}

// empty frees the memory but keeps its addresses.
func (r *stageRing) empty() { _ = unix.Madvise(r.memory, unix.MADV_DONTNEED) }

func (s *stage) release() {
	s.closePipe()
	for _, r := range s.rings {
		r.empty()
	}
}

func (s *stage) closePipe() {
	for i, fd := range s.pipe {
		if fd >= 0 {
			unix.Close(fd)
		}
		s.pipe[i] = -1
	}
}

// staged returns the bytes of a burst to be spliced, nil if it is not. Segments are staged consecutively,
// and none after one that is not.
func staged(frames []frame.Out) []byte {
	first, last := frames[0].Staged, frames[len(frames)-1].Staged
	if len(frames) < 2 || first == nil || last == nil {
		return nil
	}
	total := len(last)
	for i := range frames[:len(frames)-1] {
		total += len(frames[i].Staged)
	}
	if total < stageLeast {
		return nil
	}
	return first[:total]
}

// splice sends one message, the bytes of a burst, without a copy. The message contains the destination and
// begins a packet of the system, which the data from the pipe completes. again means that the burst must
// be sent the other way.
func (l *socketLink) splice(fd int, m *message, burst []byte) (errno unix.Errno, again bool) {
	s := &l.stage
	if s.pipe[0] < 0 && unix.Pipe2(s.pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		s.able, s.pipe = false, noPipe
		return unix.EMFILE, true
	}
	if errno := beginMessage(fd, &m.header); errno != 0 {
		return errno, false
	}
	v := unix.Iovec{Base: &burst[0]}
	v.SetLen(len(burst))
	n, errno := fillPipe(s.pipe[1], &v)
	if errno == 0 && n == len(burst) {
		if n, errno = emptyPipe(s.pipe[0], fd, n); n == len(burst) {
			m.length = uint32(n)
			return 0, false
		}
	}
	// Drop what is in the pipe, and what was begun at the socket unless the error ended it.
	s.closePipe()
	dropMessage(fd)
	if errno == 0 { // only a part
		errno = unix.EIO
	}
	if errno == unix.ENOBUFS || errno == unix.ENOMEM || errno == unix.EAGAIN || errno == unix.EINTR {
		return unix.ENOBUFS, false
	}
	return errno, true
}

// refuse excludes the destination of the first of these frames from splicing.
func (s *stage) refuse(frames []frame.Out) {
	dst := frames[0].Route.Dst
	for _, r := range s.rings {
		if r.dst == dst {
			r.refused = true
		}
	}
	for i := range frames {
		if frames[i].Route.Dst == dst {
			frames[i].Staged = nil
		}
	}
}
