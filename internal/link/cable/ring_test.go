package cable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// memory returns memory for the rings of a cable, aligned as pages are.
func memory() []byte { return make([]byte, MemoryLen) }

// TestRing: frames come out of a ring as they went in, in order, and never more than fit. The bell must be rung
// exactly when the other side waits on it.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem, way := memory(), rapid.Bool().Draw(t, "way")
		p, c := NewProducer(mem, way, rapid.Bool().Draw(t, "vcrc")), NewConsumer(mem, way)
		put, taken := uint64(0), uint64(0)
		asleep, waiting := false, false
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			n := rapid.IntRange(1, slots).Draw(t, "count")
			if rapid.Bool().Draw(t, "put") {
				room, err := p.Room()
				if err != nil || uint64(room) > slots-(put-taken) {
					t.Fatalf("room for %d frames (%v) after %d put and %d taken", room, err, put, taken)
				}
				for range min(n, room) {
					p.Put(binary.BigEndian.AppendUint64(nil, put), bytes.Repeat([]byte{byte(put)}, int(put%4000)), nil)
					put++
				}
				if rang := p.Publish(); rang != (asleep && min(n, room) > 0) {
					t.Fatalf("the bell was rung: %v, the consumer sleeps: %v", rang, asleep)
				} else if rang {
					asleep = false
				}
				if room == 0 && put-taken == slots {
					waiting = p.Wait()
				}
				continue
			}
			there, err := c.Waiting()
			if err != nil || uint64(there) > put-taken {
				t.Fatalf("%d frames wait (%v), but %d were put and %d taken", there, err, put, taken)
			}
			for range min(n, there) {
				b, vcrc, err := c.Peek()
				if err != nil || binary.BigEndian.Uint64(b) != taken || len(b) != 8+int(taken%4000) || len(vcrc) > 0 && !Right(b, vcrc) {
					t.Fatalf("frame %d came out with %d bytes (%v), or other than it went in", taken, len(b), err)
				}
				c.Take()
				taken++
			}
			if rang := c.Publish(); rang != (waiting && min(n, there) > 0) {
				t.Fatalf("the bell for room was rung: %v, the producer waits: %v", rang, waiting)
			} else if rang {
				waiting = false
			}
			if put == taken {
				asleep = c.Sleep()
			}
		}
	})
}

// TestRingBroken: indices and lengths that the other side must never write are errors.
func TestRingBroken(t *testing.T) {
	mem := memory()
	binary.LittleEndian.PutUint32(mem[ringTail:], slots+1)
	if _, err := NewConsumer(mem, true).Waiting(); !errors.Is(err, errRing) {
		t.Errorf("a tail too far ahead: error %v, want %v", err, errRing)
	}
	binary.LittleEndian.PutUint32(mem[ringHead:], 1)
	if _, err := NewProducer(mem, true, false).Room(); !errors.Is(err, errRing) {
		t.Errorf("a head in front of the tail: error %v, want %v", err, errRing)
	}
	mem = memory()
	binary.LittleEndian.PutUint32(mem[ringSlots:], MaxFrame+1)
	binary.LittleEndian.PutUint32(mem[ringTail:], 1)
	c := NewConsumer(mem, true)
	if n, err := c.Waiting(); n != 1 || err != nil {
		t.Errorf("%d frames wait (%v), want 1", n, err)
	}
	if _, _, err := c.Peek(); !errors.Is(err, errRing) {
		t.Errorf("a frame that is too long: error %v, want %v", err, errRing)
	}
}
