// Package frames is the two ends of bench's frames: a program that sends Ethernet frames in bursts and one that receives them, through
// packetdirect, or through the rings of a packet socket, with which that is compared.
package frames

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/tools/ndperf"
	"github.com/softvpi/softvpi/packetdirect"
)

// Result is what an end has done.
type Result struct {
	Frames  uint64  `json:"frames"`
	Seconds float64 `json:"seconds"`
	// Busy is the processor time of the process in that time, in seconds.
	Busy float64 `json:"busy"`
}

// Rate returns the frames of a second.
func (r Result) Rate() float64 { return float64(r.Frames) / max(r.Seconds, 1e-9) }

// EtherType is that of the frames, one for local experiments (IEEE 802).
const EtherType = 0x88b5

// Config describes an end.
type Config struct {
	Adapter   string  // of the driver, for packetdirect
	Interface string  // for the rings of a packet socket; empty: packetdirect
	To        [6]byte // to which MAC is sent
	Size      int     // bytes of a frame, without FCS
	Burst     int
	For       time.Duration
}

// frame writes the frame that is sent.
func (c *Config) frame(b []byte, from [6]byte) {
	copy(b, c.To[:])
	copy(b[6:], from[:])
	binary.BigEndian.PutUint16(b[12:], EtherType)
}

// end is an end that sends or takes a burst, and returns how many frames it was.
type end func() (int, error)

// checkEvery is after how many bursts the time is looked at.
const checkEvery = 64

// run drives an end for a time; the time of one that receives begins with its first frame.
func (c *Config) run(ctx context.Context, e end, waits bool) (r Result, err error) {
	begin, busy := time.Now(), ndperf.ProcessorTime()
	for turn := 0; ; turn++ {
		n, err := e()
		if err != nil {
			return r, err
		}
		if waits && n > 0 {
			waits, begin, busy = false, time.Now(), ndperf.ProcessorTime()
			continue
		}
		r.Frames += uint64(n)
		if turn%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return r, err
			}
			if d := time.Since(begin); !waits && d >= c.For {
				r.Seconds, r.Busy = d.Seconds(), (ndperf.ProcessorTime() - busy).Seconds()
				return r, nil
			}
		}
	}
}

// Send sends for a time, as fast as it can. ready is called when it begins.
func Send(ctx context.Context, c Config, ready func()) (Result, error) {
	if c.Interface != "" {
		e, done, err := c.ringSender()
		if err != nil {
			return Result{}, err
		}
		defer done()
		ready()
		return c.run(ctx, e, false)
	}
	a, err := packetdirect.Open(ctx, packetdirect.Options{Adapter: c.Adapter})
	if err != nil {
		return Result{}, err
	}
	defer a.Close()
	const depth = 512
	q, err := a.NewTransmitQueue(packetdirect.QueueConfig{Depth: depth})
	if err != nil {
		return Result{}, err
	}
	pool, err := a.NewPool(depth, max(c.Size, 64))
	if err != nil {
		return Result{}, err
	}
	for _, b := range pool.Buffers() {
		b.SetLen(c.Size)
		c.frame(b.Bytes(), a.MAC())
	}
	ready()
	free, some := pool.Buffers(), make([]*packetdirect.Buffer, c.Burst)
	return c.run(ctx, func() (int, error) {
		n := min(c.Burst, len(free))
		posted, drained, err := q.PostAndDrain(free[len(free)-n:], some)
		free = append(free[:len(free)-posted], some[:drained]...)
		return posted, err
	}, false)
}

// Receive receives for a time, from the first frame on.
func Receive(ctx context.Context, c Config) (Result, error) {
	if c.Interface != "" {
		e, done, err := c.ringReceiver()
		if err != nil {
			return Result{}, err
		}
		defer done()
		return c.run(ctx, e, true)
	}
	a, err := packetdirect.Open(ctx, packetdirect.Options{Adapter: c.Adapter})
	if err != nil {
		return Result{}, err
	}
	defer a.Close()
	const depth = 2048
	q, err := a.NewReceiveQueue(packetdirect.QueueConfig{Depth: depth})
	if err != nil {
		return Result{}, err
	}
	pool, err := a.NewPool(depth, max(c.Size, 64))
	if err != nil {
		return Result{}, err
	}
	if _, _, err := q.PostAndDrain(pool.Buffers(), nil); err != nil {
		return Result{}, err
	}
	if _, err := q.AddFilter(packetdirect.Filter{Dst: a.MAC(), EtherType: EtherType}); err != nil {
		return Result{}, err
	}
	some, n := make([]*packetdirect.Buffer, c.Burst), 0
	return c.run(ctx, func() (int, error) {
		if _, n, err = q.PostAndDrain(some[:n], some); n > 0 && len(some[0].Bytes()) != c.Size {
			return n, fmt.Errorf("a frame of %d bytes has arrived, want %d", len(some[0].Bytes()), c.Size)
		}
		return n, err
	}, true)
}
