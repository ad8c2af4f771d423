package cable

import "encoding/binary"

// inbox keeps the frames that have come by datagrams, each in one piece as it stands in the stream, until they are
// taken and then released. It holds as much as the other end has credits for: whoever fills it has looked to that.
type inbox struct {
	buf              []byte
	head, read, tail int // released, taken and filled up to here
	end              int // where the frames end that stand before those at the beginning; 0: none do
	ready            int // whole frames that are not taken
	held, taken      int // bytes that are not released, and those of them that were taken
	have             int // bytes of the frame that is coming
}

func newInbox(window int) inbox { return inbox{buf: make([]byte, window+2*maxRecord)} }

// coming is the length of the frame that is coming with what stands around it, as far as its first bytes tell: 0 when they have
// not come, -1 where no frame is so long.
func (b *inbox) coming() int {
	if b.have < 2 { // what stands there is older
		return 0
	}
	n := int(binary.LittleEndian.Uint16(b.buf[b.tail:]))
	if n < minFrame || n > MaxFrame || n%4 != 0 {
		return -1
	}
	return n + recordMore
}

// fill takes bytes of the stream; whole is false where they are of no frame, and nothing more can be made of them.
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

// abandon gives up the frame that is coming.
func (b *inbox) abandon() {
	b.held -= b.have
	b.have = 0
}

// peek is the next frame with its variant CRC behind it; nil: there is none. It stays where it is until it is taken and released.
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

// take takes what peek has shown.
func (b *inbox) take() {
	n := int(binary.LittleEndian.Uint16(b.buf[b.read:])) + recordMore
	b.read += n
	b.taken += n
	b.ready--
}

// release makes room of what was taken.
func (b *inbox) release() {
	if b.read < b.head {
		b.end = 0
	}
	b.head = b.read
	b.held -= b.taken
	b.taken = 0
}
