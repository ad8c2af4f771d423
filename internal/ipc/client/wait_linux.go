package client

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/wait"
)

const (
	// wordLooks is how many reads of a word take as long as a poll of a CQ.
	wordLooks = 16
	// sleepersAfterSequence is the distance of the sleepers word from the
	// sequence word in a CQ's ring.
	sleepersAfterSequence = 4
)

// words are the sequence words of the client's CQs.
type words struct {
	mu   sync.RWMutex
	list map[command.Handle]*uint32
}

// set records the location of a CQ's ring.
func (w *words) set(c *Client, q command.Queue) error {
	a := c.Arena(q.Ring.Arena)
	if uint64(len(a)) < ring.HeaderSize || q.Ring.Offset > uint64(len(a)-ring.HeaderSize) || q.Ring.Offset%64 != 0 {
		return command.Errorf(command.Internal, "the driver's answer: ring at %d of arena %d", q.Ring.Offset, q.Ring.Arena)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list[q.Handle] = (*uint32)(unsafe.Pointer(&a[q.Ring.Offset+ring.SequenceAt]))
	return nil
}

func (w *words) drop(cq command.Handle) {
	w.mu.Lock()
	word := w.list[cq]
	delete(w.list, cq)
	w.mu.Unlock()
	if word != nil {
		shared.Wake(word)
	}
}

func (w *words) get(cq command.Handle) *uint32 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.list[cq]
}

func (w *words) wakeAll() {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, word := range w.list {
		shared.Wake(word)
	}
}

// WaitCQ waits until the event sequence of the CQ's ring differs from seq, and returns the new value. To
// lose no event: read the sequence, arm the ring, poll it once more, and only then wait. The error is
// TimedOut or Canceled by ctx, NotFound when the CQ is destroyed, or Removed when the driver is gone.
func (c *Client) WaitCQ(ctx context.Context, cq command.Handle, seq uint32) (uint32, error) {
	word := c.words.get(cq)
	if word == nil {
		return 0, command.Errorf(command.NotFound, "CQ %#x", uint32(cq))
	}
	if s, ok := c.spin(word, seq); ok {
		return s, nil
	}
	return c.sleepOn(ctx, cq, word, seq)
}

// SleepCQ is WaitCQ without polling first.
func (c *Client) SleepCQ(ctx context.Context, cq command.Handle, seq uint32) (uint32, error) {
	word := c.words.get(cq)
	if word == nil {
		return 0, command.Errorf(command.NotFound, "CQ %#x", uint32(cq))
	}
	return c.sleepOn(ctx, cq, word, seq)
}

// RouseCQ makes those look who wait for the CQ, after the program has advanced its sequence.
func (c *Client) RouseCQ(cq command.Handle) {
	if word := c.words.get(cq); word != nil && sleepersOf(word).Load() != 0 {
		shared.Wake(word)
	}
}

// sleepersOf returns the number of those who sleep on a sequence word.
func sleepersOf(word *uint32) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Add(unsafe.Pointer(word), sleepersAfterSequence))
}

func (c *Client) sleepOn(ctx context.Context, cq command.Handle, word *uint32, seq uint32) (uint32, error) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { shared.Wake(word) })
		defer stop()
	}
	sleepers := sleepersOf(word)
	sleepers.Add(1)
	defer sleepers.Add(^uint32(0))
	for {
		if s := atomic.LoadUint32(word); s != seq {
			return s, nil
		}
		if c.stop.Load() {
			return 0, c.calls.failure()
		}
		if ctx.Err() != nil {
			return 0, command.Ended(ctx)
		}
		if now := c.words.get(cq); now != word {
			if now == nil {
				return 0, command.Errorf(command.NotFound, "CQ %#x was destroyed", uint32(cq))
			}
			return atomic.LoadUint32(now), nil // resized: check the new ring
		}
		shared.Sleep(word, seq, int64(wait.SleepSlice))
	}
}

// spin polls for a while, yielding between polls.
func (c *Client) spin(word *uint32, seq uint32) (uint32, bool) {
	spin := wait.Spinner{Policy: c.policy.wait}
	spin.Begin(wait.Now())
	for {
		for range wordLooks {
			if s := atomic.LoadUint32(word); s != seq {
				return s, true
			}
		}
		if !c.contention.Again(&spin) {
			return 0, false
		}
	}
}
