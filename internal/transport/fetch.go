package transport

import (
	"errors"

	"github.com/softvpi/softvpi/internal/memory"
)

// fetch is a piece of a message that was fetched, or is being fetched, from memory that the engine cannot
// access within a call. The zero value is empty.
type fetch struct{ b *fetchBuffer }

// fetchBuffer outlives its fetch while copies into it are in progress.
type fetchBuffer struct {
	message uint64 // the message: buffers.id, or 0
	off     uint64 // offset in the message, or an address
	data    []byte
	busy    int // copies in progress
	err     error
	dropped bool
}

// ended records the end of a copy into the buffer.
func (b *fetchBuffer) ended(e *Engine, err error) {
	b.busy--
	if err != nil {
		b.err = err
	}
	if b.dropped && b.busy == 0 {
		e.copies.large = append(e.copies.large, b.data[:fetchSize])
	}
}

// dropFetch releases the buffer of f once its copies are finished and the packets that point into it have
// been sent.
func (e *Engine) dropFetch(f *fetch) {
	b := f.b
	if b == nil {
		return
	}
	f.b = nil
	if b.busy > 0 {
		b.dropped = true
		return
	}
	e.copies.old = append(e.copies.old, b.data[:fetchSize])
}

// reuseFetched frees the buffers that no packet points into any more.
func (e *Engine) reuseFetched() {
	c := &e.copies
	if len(c.old) == 0 {
		return
	}
	c.large = append(c.large, c.old...)
	clear(c.old)
	c.old = c.old[:0]
}

// has returns n bytes from off of message if they are in the buffer. wait means that they are being
// fetched.
func (f *fetch) has(message, off, n uint64) (data []byte, wait bool, err error) {
	b := f.b
	if b == nil {
		return nil, false, nil
	}
	inside := b.message == message && off >= b.off && off-b.off+n <= uint64(len(b.data))
	switch {
	case b.busy > 0:
		return nil, true, nil
	case !inside:
		return nil, false, nil
	case b.err != nil:
		return nil, false, b.err
	}
	return b.data[off-b.off : off-b.off+n], false, nil
}

// begin prepares the buffer for n bytes from off of message.
func (e *Engine) begin(f *fetch, message, off, n uint64) *fetchBuffer {
	b := f.b
	e.dropFetch(f)
	if b == nil || b.busy > 0 {
		b = new(fetchBuffer)
	}
	c := &e.copies
	var data []byte
	if k := len(c.large); k > 0 {
		data = c.large[k-1]
		c.large = c.large[:k-1]
	} else {
		data = make([]byte, fetchSize)
		c.made++
	}
	*b = fetchBuffer{message: message, off: off, data: data[:n]}
	f.b = b
	return b
}

// mayBuffer reports whether reading ahead may use a buffer; the memory for all queue pairs is limited.
func (e *Engine) mayBuffer() bool {
	return len(e.copies.large) > 0 || e.copies.made < maxAhead
}

func (q *QP) startRead(b *fetchBuffer, r *memory.Region, addr uint64, dst []byte) {
	b.busy++
	q.eng.start(q, r, memory.Transfer{Kind: memory.CopyRead, Addr: r.OwnerAddr(addr), Data: dst}, copyOp{kind: copyFetch, fetch: b})
}

// fetchLength returns how much of the remaining left bytes to fetch: whole packets, as far as the memory's
// owner accepts at once.
func (q *QP) fetchLength(left uint64, r *memory.Region) uint64 {
	limit := uint64(fetchSize)
	if d, ok := r.Remote.(memory.Deferred); ok && d.Limit() >= q.mtu && d.Limit() < fetchSize {
		limit = uint64(d.Limit())
	}
	if q.mtu > 0 {
		limit -= limit % uint64(q.mtu)
	}
	return min(left, limit)
}

// fetched returns n bytes of a work request's message from off. nil without an error: they are not
// available yet, or scratch is full.
func (q *QP) fetched(f *fetch, b *buffers, off, n uint64) ([]byte, error) {
	if v := b.view(off, n); v != nil {
		return v, nil
	}
	if f.b != nil {
		if data, wait, err := f.has(b.id, off, n); data != nil || wait || err != nil {
			q.eng.copied(data)
			return data, err
		}
	}
	if data, err := q.readAhead(f, b, off, n); data != nil || err != nil {
		return data, err
	}
	if !q.eng.scratch.has(n) {
		return nil, nil
	}
	buf := q.eng.scratch.take(int(n))
	err := b.read(buf, off)
	if err == nil {
		q.eng.copied(buf)
		return buf, nil
	}
	if !errors.Is(err, memory.ErrBlock) {
		return nil, err
	}
	return nil, q.fetchAhead(f, b, off)
}

// readAhead reads a large piece of a message from off and returns the first n bytes: calling the memory's
// owner costs far more than copying a packet's bytes. nil if the memory is mapped or deferred, or there is
// no more to read.
func (q *QP) readAhead(f *fetch, b *buffers, off, n uint64) ([]byte, error) {
	b.seek(off)
	if int(b.at) >= len(b.sges) || b.length-off <= n || !q.eng.mayBuffer() {
		return nil, nil
	}
	if r := b.region(b.at); r.Mapped() || deferred(r) {
		return nil, nil
	}
	p := q.eng.begin(f, b.id, off, q.wholePackets(min(b.length-off, fetchSize)))
	err := b.read(p.data, off)
	switch {
	case err == nil:
		q.eng.copied(p.data[:n])
		return p.data[:n], nil
	case errors.Is(err, memory.ErrBlock): // a later element is accessed in another way
		q.eng.dropFetch(f)
		return nil, nil
	}
	q.eng.dropFetch(f)
	return nil, err
}

// wholePackets rounds n down to whole packets, unless it is less than one.
func (q *QP) wholePackets(n uint64) uint64 {
	if mtu := uint64(q.mtu); mtu > 0 && n > mtu {
		n -= n % mtu
	}
	return n
}

// fetchAhead starts copies that fetch a piece of a message.
func (q *QP) fetchAhead(f *fetch, b *buffers, off uint64) error {
	b.seek(off)
	length := min(b.length-off, fetchSize)
	for i := int(b.at); i < len(b.sges); i++ {
		if deferred(b.region(int32(i))) {
			length = min(length, q.fetchLength(b.length-off, b.region(int32(i))))
		}
	}
	p := q.eng.begin(f, b.id, off, length)
	for dst := p.data; len(dst) > 0; {
		b.seek(off)
		s, r := &b.sges[b.at], b.region(b.at)
		in := off - b.start
		n := min(uint64(len(dst)), uint64(s.Length)-in)
		err := r.Read(dst[:n], s.Addr+in)
		if errors.Is(err, memory.ErrBlock) {
			q.startRead(p, r, s.Addr+in, dst[:n])
		} else if err != nil {
			return err
		}
		dst, off = dst[n:], off+n
	}
	return nil
}

// fetchedAt returns the next n of left bytes of a read response, after fetching them if necessary.
func (q *QP) fetchedAt(f *fetch, s memory.Span, n, left uint64) ([]byte, error) {
	r := s.Region
	switch {
	case n == 0:
		return nil, nil
	case r.Dead():
		return nil, memory.ErrGone
	case r.Mapped():
		return r.Slice(s.Addr, n), nil
	case deferred(r):
		data, wait, err := f.has(0, s.Addr, n)
		if data != nil || wait || err != nil {
			q.eng.copied(data)
			return data, err
		}
		p := q.eng.begin(f, 0, s.Addr, q.fetchLength(left, r))
		q.startRead(p, r, s.Addr, p.data)
		return nil, nil
	}
	if data, wait, err := f.has(0, s.Addr, n); data != nil || wait || err != nil {
		q.eng.copied(data)
		return data, err
	}
	if left > n && q.eng.mayBuffer() {
		p := q.eng.begin(f, 0, s.Addr, q.wholePackets(min(left, fetchSize)))
		if err := r.Read(p.data, s.Addr); err != nil {
			q.eng.dropFetch(f)
			return q.orFetch(err, f, s, n, left)
		}
		q.eng.copied(p.data[:n])
		return p.data[:n], nil
	}
	if q.eng.scratch.full() {
		return nil, nil
	}
	buf := q.eng.scratch.take(int(n))
	if err := r.Read(buf, s.Addr); err != nil {
		return q.orFetch(err, f, s, n, left)
	}
	q.eng.copied(buf)
	return buf, nil
}

// orFetch begins to fetch if err says that memory turned out not to be readable within the call.
func (q *QP) orFetch(err error, f *fetch, s memory.Span, n, left uint64) ([]byte, error) {
	if errors.Is(err, memory.ErrBlock) && deferred(s.Region) {
		return q.fetchedAt(f, s, n, left)
	}
	return nil, err
}

// copied counts a packet whose payload is a copy; nil does not count.
func (e *Engine) copied(payload []byte) {
	if payload != nil {
		e.counters.CopiedPackets++
	}
}
