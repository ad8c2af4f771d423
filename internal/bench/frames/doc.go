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
	"github.com/softvpi/softvpi/wire/eth"
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
	// Flows are how many flows of TCP over IPv4 the frames are of; 0: frames of EtherType, which no queue is chosen for. With packetdirect
	// alone, and so are the following.
	Flows int
	// Queues are how many receive queues a Spread has; 0: one queue, without it.
	Queues int
	// Segment has a sender post large packets of LargeData bytes, which the adapter cuts into frames of so many bytes of data; 0: each
	// frame is posted.
	Segment int
	// Checksums has the adapter fill in those of IPv4 and TCP, as it does for large packets.
	Checksums bool
}

// LargeData is how many bytes of data a large packet has: of all frames as much, if they have 1460 bytes, or 730.
const LargeData = 42 * 1460

// Headers are the bytes before the data of a frame of TCP.
const Headers = eth.EthernetLen + eth.IPv4Len + eth.TCPLen

// frame writes the frame that is sent, the n-th of those that are sent in turn.
func (c *Config) frame(b []byte, from [6]byte, n int) {
	h := eth.Ethernet{Dst: c.To, Src: from, Type: EtherType}
	if c.Flows > 0 {
		h.Type = eth.TypeIPv4
	}
	h.Put(b)
	if c.Flows == 0 {
		return
	}
	ip := eth.IPv4(b[eth.EthernetLen:])
	ip.Encode(0, len(ip), 0, 64, eth.ProtocolTCP, [4]byte{192, 0, 2, 1}, [4]byte{192, 0, 2, 2})
	ip.SetChecksum()
	tcp := ip[eth.IPv4Len:]
	binary.BigEndian.PutUint16(tcp, uint16(1024+n%c.Flows))
	binary.BigEndian.PutUint16(tcp[2:], 5001)
	tcp[12], tcp[13] = eth.TCPLen/4<<4, 0x10 // ACK
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
	depth, size := 512, max(c.Size, 64)
	if c.Segment > 0 {
		depth, size = 64, Headers+LargeData
	}
	q, err := a.NewTransmitQueue(packetdirect.QueueConfig{Depth: depth, Large: c.Segment > 0, Checksums: c.Checksums})
	if err != nil {
		return Result{}, err
	}
	pool, err := a.NewPool(depth, size)
	if err != nil {
		return Result{}, err
	}
	for i, b := range pool.Buffers() {
		b.SetLen(c.Size)
		if c.Segment > 0 {
			b.SetLen(size)
		}
		c.frame(b.Bytes(), a.MAC(), i)
		if c.Segment > 0 {
			b.SetLarge(size, Headers, c.Segment)
		}
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
	queues, err := c.receivers(a)
	if err != nil {
		return Result{}, err
	}
	some, n, turn := make([]*packetdirect.Buffer, c.Burst), make([]int, len(queues)), 0
	back := make([][]*packetdirect.Buffer, len(queues)) // what each has given, which is posted again with its next turn
	for i := range back {
		back[i] = make([]*packetdirect.Buffer, c.Burst)
	}
	return c.run(ctx, func() (int, error) {
		i := turn % len(queues)
		turn++
		_, got, err := queues[i].PostAndDrain(back[i][:n[i]], some)
		n[i] = copy(back[i], some[:got])
		if got > 0 && len(some[0].Bytes()) != c.Size {
			return got, fmt.Errorf("a frame of %d bytes has arrived, want %d", len(some[0].Bytes()), c.Size)
		}
		return got, err
	}, true)
}

// receivers makes the queues of an end that receives, which are served in turn.
func (c *Config) receivers(a *packetdirect.Adapter) (list []*packetdirect.ReceiveQueue, err error) {
	const depth = 2048
	filter := packetdirect.Filter{Dst: a.MAC(), EtherType: EtherType}
	if c.Flows > 0 {
		filter.EtherType = uint16(eth.TypeIPv4)
	}
	for range max(c.Queues, 1) {
		q, err := a.NewReceiveQueue(packetdirect.QueueConfig{Depth: depth / max(c.Queues, 1)})
		if err != nil {
			return nil, err
		}
		pool, err := a.NewPool(depth/max(c.Queues, 1), max(c.Size, 64))
		if err == nil {
			_, _, err = q.PostAndDrain(pool.Buffers(), nil)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	if c.Queues == 0 {
		_, err = list[0].AddFilter(filter)
		return list, err
	}
	s, err := a.NewSpread(packetdirect.SpreadConfig{Queues: list})
	if err == nil {
		_, err = s.AddFilter(filter)
	}
	return list, err
}
