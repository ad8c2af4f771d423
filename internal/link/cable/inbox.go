package cable

import "encoding/binary"

// inbox keeps the frames received in datagrams, each contiguous and as it is in the stream, until they are
// taken and then released. It holds as much as the other end has credits for; the caller of fill ensures
// that.
type inbox struct {
	buf              []byte
	head, read, tail int // released, taken and filled up to here
	end              int // end of the frames that precede those at the beginning of buf; 0: there are none
	ready            int // complete frames not taken yet
	held, taken      int // bytes not released, and those of them already taken
	have             int // bytes received of the current frame
}

func newInbox(window int) inbox { return inbox{buf: make([]byte, window+2*maxRecord)} }

// coming returns the length of the frame being received, including what surrounds it: 0 if that is not
// known yet, -1 if it is no valid length.
func (b *inbox) coming() int {
	if b.have < 2 { // what is there is older
		return 0
	}
	n := int(binary.LittleEndian.Uint16(b.buf[b.tail:]))
	if n < minFrame || n > MaxFrame {
		return -1
	}
	return n + recordMore
}

// fill adds bytes of the stream; whole is false if they belong to no frame, so that nothing more can be
// made of the stream.
func (b *inbox) fill(p []byte) (whole bool) {
	for len(p) > 0 {
		if b.have == 0 && b.tail+maxRecord > len(b.buf) {
			b.end, b.tail = b.tail, 0
		}
		want := b.coming()
		switch {
		case want < 0:
			b.abandon()
			return false
		case want == 0:
			want = 2
		}
		n := copy(b.buf[b.tail+b.have:b.tail+want], p)
		b.have += n
		b.held += n
		if p = p[n:]; b.have > 2 && b.have == want {
			b.tail += want
			b.have = 0
			b.ready++
		}
	}
	return b.coming() >= 0
}

// abandon drops the frame being received.
func (b *inbox) abandon() {
	b.held -= b.have
	b.have = 0
}

// peek returns the next frame, followed by its variant CRC, or nil. It remains valid until it is taken and
// released.
func (b *inbox) peek() []byte {
	if b.ready == 0 {
		return nil
	}
	if b.end > 0 && b.read == b.end {
		b.read = 0
	}
	n := int(binary.LittleEndian.Uint16(b.buf[b.read:])) + recordMore
	return b.buf[b.read+2 : b.read+n : b.read+n]
}

// take takes the frame that peek returned.
func (b *inbox) take() {
	n := int(binary.LittleEndian.Uint16(b.buf[b.read:])) + recordMore
	b.read += n
	b.taken += n
	b.ready--
}

// release frees the room of the frames taken.
func (b *inbox) release() {
	if b.read < b.head {
		b.end = 0
	}
	b.head = b.read
	b.held -= b.taken
	b.taken = 0
}
