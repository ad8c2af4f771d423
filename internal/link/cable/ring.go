package cable

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/wire/ib"
)

// Layout of a ring in shared memory: four words, each in a cache line of its own, then the slots. A slot
// begins with a word that holds the frame's length, with the bit slotVCRC if a variant CRC follows the
// frame.
const (
	// MaxFrame is the length of the longest frame, from LRH to ICRC, with a GRH and the extended headers
	// around a payload of 4096 bytes.
	MaxFrame   = 4224
	slots      = 256
	slotHeader = 8
	slotSize   = 4288 // a multiple of the cache line but not of a page, so that slots begin in all sets of the cache
	slotVCRC   = 1 << 16

	ringTail  = 0   // count of frames put in
	ringHead  = 64  // count of frames taken out
	ringSleep = 128 // 1: the consumer waits for the bell
	ringFull  = 192 // 1: the producer waits for the bell
	ringSlots = 256
	ringLen   = ringSlots + slots*slotSize

	// MemoryLen is the size of a cable's shared memory: the ring towards the fabric, then the one towards
	// the adapter.
	MemoryLen = 2 * ringLen
)

// errRing says that the other side of a ring has written something invalid.
var errRing = errors.New("the other end of the cable broke the rules of the ring")

// words are the shared words of a ring, and its slots.
type words struct {
	tail, head, sleep, full *atomic.Uint32
	slots                   []byte
}

func wordsOf(mem []byte) words {
	word := func(at int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&mem[at])) }
	return words{word(ringTail), word(ringHead), word(ringSleep), word(ringFull), mem[ringSlots:ringLen]}
}

func (w *words) slot(i uint32) []byte {
	at := int(i%slots) * slotSize
	return w.slots[at : at+slotSize : at+slotSize]
}

// Producer puts frames into a ring. Whatever the other side does to the memory causes an error at most.
type Producer struct {
	words
	next   uint32 // index of the next frame
	public uint32 // count published to the other side
	room   uint32 // slots known to be free
	vcrc   bool
}

// NewProducer creates the producer of a ring in the fresh memory of a cable: the ring towards the fabric,
// or the one towards the adapter. With vcrc, every frame is followed by its variant CRC.
func NewProducer(mem []byte, toFabric, vcrc bool) *Producer {
	return &Producer{words: wordsOf(part(mem, toFabric)), vcrc: vcrc}
}

func part(mem []byte, toFabric bool) []byte {
	if toFabric {
		return mem[:ringLen]
	}
	return mem[ringLen:MemoryLen]
}

// Room returns how many frames can be put in. The error is errRing.
func (p *Producer) Room() (int, error) {
	if p.room == 0 {
		used := p.next - p.head.Load()
		if used > slots {
			return 0, errRing
		}
		p.room = slots - used
	}
	return int(p.room), nil
}

// Put puts in a frame of up to MaxFrame bytes in up to three pieces. There must be room.
func (p *Producer) Put(head, payload, tail []byte) {
	b := p.slot(p.next)
	frame := b[slotHeader:]
	n := copy(frame, head)
	n += copy(frame[n:], payload)
	n += copy(frame[n:], tail)
	length := uint32(n)
	if p.vcrc {
		ib.PutVCRC(frame[n:], ib.VCRC(frame[:n]))
		length |= slotVCRC
	}
	*(*uint32)(unsafe.Pointer(&b[0])) = length
	p.next++
	p.room--
}

// Publish makes the frames put in visible to the other side. True: it sleeps, so ring the bell.
func (p *Producer) Publish() bool {
	if p.public == p.next {
		return false
	}
	p.public = p.next
	p.tail.Store(p.next)
	return p.sleep.Load() != 0 && p.sleep.CompareAndSwap(1, 0)
}

// Wait asks the other side to ring the bell when there is room. False: there is some already.
func (p *Producer) Wait() bool {
	p.full.Store(1)
	return p.next-p.head.Load() == slots || !p.full.CompareAndSwap(1, 0)
}

// waits reports whether the bell is still to be rung since Wait.
func (p *Producer) waits() bool { return p.full.Load() != 0 }

// Consumer takes frames out of a ring.
type Consumer struct {
	words
	next   uint32
	public uint32
	there  uint32 // frames known to be there
}

// NewConsumer creates the consumer of a ring, like NewProducer.
func NewConsumer(mem []byte, toFabric bool) *Consumer {
	return &Consumer{words: wordsOf(part(mem, toFabric))}
}

// Waiting returns how many frames can be taken. The error is errRing.
func (c *Consumer) Waiting() (int, error) {
	if c.there == 0 {
		if c.there = c.tail.Load() - c.next; c.there > slots {
			c.there = 0
			return 0, errRing
		}
	}
	return int(c.there), nil
}

// Peek returns the next frame, which must be there, in the ring: the other side can change it at any time.
// vcrc is its variant CRC, if it has one.
func (c *Consumer) Peek() (frame, vcrc []byte, err error) {
	b := c.slot(c.next)
	length := atomic.LoadUint32((*uint32)(unsafe.Pointer(&b[0])))
	n := length &^ slotVCRC
	if n > MaxFrame {
		return nil, nil, errRing
	}
	if length&slotVCRC != 0 {
		vcrc = b[slotHeader+n:][:ib.VCRCLen]
	}
	return b[slotHeader:][:n], vcrc, nil
}

// Right reports whether a variant CRC is that of the frame.
func Right(frame, vcrc []byte) bool { return uint16(vcrc[0])|uint16(vcrc[1])<<8 == ib.VCRC(frame) }

// Take takes the next frame out.
func (c *Consumer) Take() {
	c.next++
	c.there--
}

// Publish returns the slots of the frames taken. True: the other side waits for them, so ring the bell.
func (c *Consumer) Publish() bool {
	if c.public == c.next {
		return false
	}
	c.public = c.next
	c.head.Store(c.next)
	return c.full.Load() != 0 && c.full.CompareAndSwap(1, 0)
}

// Sleep asks the other side to ring the bell for the next frame. False: there is one already.
func (c *Consumer) Sleep() bool {
	c.sleep.Store(1)
	return c.tail.Load() == c.next || !c.sleep.CompareAndSwap(1, 0)
}

// sleeps reports whether the bell is still to be rung since Sleep.
func (c *Consumer) sleeps() bool { return c.sleep.Load() != 0 }
