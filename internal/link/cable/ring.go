package cable

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/wire/ib"
)

// Sizes of a ring in shared memory: four words, each in a line of the processor's cache, then the slots. A slot begins with a
// word that is the frame's length, with the bit slotVCRC where a variant CRC stands behind the frame.
const (
	// MaxFrame is the longest frame, from LRH to ICRC, with a GRH and the extended headers around a payload of 4096 bytes.
	MaxFrame   = 4224
	slots      = 256
	slotHeader = 8
	slotSize   = 4288 // a multiple of the cache line, and of no page: slots begin in all sets of the cache
	slotVCRC   = 1 << 16

	ringTail  = 0   // what has been put in, counted
	ringHead  = 64  // what has been taken out
	ringSleep = 128 // 1: who takes out waits for a bell
	ringFull  = 192 // 1: who puts in waits for one
	ringSlots = 256
	ringLen   = ringSlots + slots*slotSize

	// MemoryLen is the shared memory of a cable: the ring towards the fabric, then that of the adapter.
	MemoryLen = 2 * ringLen
)

// errRing says that the other side of a ring has written what it never should.
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

// Producer puts frames into a ring. What the other side does to the memory makes an error at most.
type Producer struct {
	words
	next   uint32 // what is put in next
	public uint32 // what the other side was told
	room   uint32 // slots known to be free
	vcrc   bool
}

// NewProducer begins with a ring of the memory of a cable, which is fresh: the one towards the fabric, or that of the adapter. vcrc
// puts the variant CRC behind every frame.
func NewProducer(mem []byte, toFabric, vcrc bool) *Producer {
	return &Producer{words: wordsOf(part(mem, toFabric)), vcrc: vcrc}
}

func part(mem []byte, toFabric bool) []byte {
	if toFabric {
		return mem[:ringLen]
	}
	return mem[ringLen:MemoryLen]
}

// Room is how many frames can be put in. The error is errRing.
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

// Put puts a frame in, of up to MaxFrame bytes in up to three pieces. There must be room.
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

// Publish shows the other side what was put in. True: it sleeps, and the bell is to be rung.
func (p *Producer) Publish() bool {
	if p.public == p.next {
		return false
	}
	p.public = p.next
	p.tail.Store(p.next)
	return p.sleep.Load() != 0 && p.sleep.CompareAndSwap(1, 0)
}

// Wait tells the other side to ring the bell when there is room. False: there is some already.
func (p *Producer) Wait() bool {
	p.full.Store(1)
	return p.next-p.head.Load() == slots || !p.full.CompareAndSwap(1, 0)
}

// waits tells whether the bell is still to be rung since Wait.
func (p *Producer) waits() bool { return p.full.Load() != 0 }

// Consumer takes frames out of a ring.
type Consumer struct {
	words
	next   uint32
	public uint32
	there  uint32 // frames known to be there
}

// NewConsumer is the other side of NewProducer.
func NewConsumer(mem []byte, toFabric bool) *Consumer {
	return &Consumer{words: wordsOf(part(mem, toFabric))}
}

// Waiting is how many frames can be taken. The error is errRing.
func (c *Consumer) Waiting() (int, error) {
	if c.there == 0 {
		if c.there = c.tail.Load() - c.next; c.there > slots {
			c.there = 0
			return 0, errRing
		}
	}
	return int(c.there), nil
}

// Peek is the next frame, which must be there, in the ring: the other side can change it at any time until Take. A variant CRC
// of it stands in vcrc, where it has one.
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

// Right tells whether a variant CRC is that of a frame.
func Right(frame, vcrc []byte) bool { return uint16(vcrc[0])|uint16(vcrc[1])<<8 == ib.VCRC(frame) }

// Take takes the next frame out.
func (c *Consumer) Take() {
	c.next++
	c.there--
}

// Publish gives the slots of what was taken back. True: the other side waits for that, and the bell is to be rung.
func (c *Consumer) Publish() bool {
	if c.public == c.next {
		return false
	}
	c.public = c.next
	c.head.Store(c.next)
	return c.full.Load() != 0 && c.full.CompareAndSwap(1, 0)
}

// Sleep tells the other side to ring the bell for the next frame. False: there is one already.
func (c *Consumer) Sleep() bool {
	c.sleep.Store(1)
	return c.tail.Load() == c.next || !c.sleep.CompareAndSwap(1, 0)
}

// sleeps tells whether the bell is still to be rung since Sleep.
func (c *Consumer) sleeps() bool { return c.sleep.Load() != 0 }
