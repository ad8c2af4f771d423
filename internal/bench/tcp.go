package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// TCPResult is what the plain TCP sender measured.
type TCPResult struct {
	Bytes   int     `json:"bytes"` // of a message
	Gbps    float64 `json:"gbps"`  // 2^30 bits a second, as delivered
	Typical float64 `json:"typical_us"`
	P99     float64 `json:"p99_us"` // one way: half of the round trip
}

// ServeTCP answers one client of DialTCP: it counts what comes, or sends every
// message back.
func ServeTCP(ctx context.Context, addr string, ready func()) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	ready()
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	var head [5]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	size := int(head[1])<<24 | int(head[2])<<16 | int(head[3])<<8 | int(head[4])
	if size < 1 || size > 16<<20 {
		return fmt.Errorf("the client asks for messages of %d bytes; allowed: 1 to %d", size, 16<<20)
	}
	set := newSet(size)
	if head[0] == 'l' {
		return echo(c, set)
	}
	return count(c, set)
}

// set is the memory that a side cycles through, 16 MB as on the RDMA side.
type set struct {
	blocks [][]byte
	next   int
}

const setSize = 16 << 20

func newSet(size int) *set {
	s := &set{}
	mem := make([]byte, max(setSize, size))
	for i := range mem { // pages that were never written are all one page of zeros
		mem[i] = byte(i)
	}
	for at := 0; at+size <= len(mem); at += (size + 63) &^ 63 {
		s.blocks = append(s.blocks, mem[at:at+size])
	}
	return s
}

func (s *set) block() []byte {
	b := s.blocks[s.next]
	if s.next++; s.next == len(s.blocks) {
		s.next = 0
	}
	return b
}

func echo(c net.Conn, s *set) error {
	for {
		b := s.block()
		if _, err := io.ReadFull(c, b); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
}

// count reads to the end of what comes and tells the client how many bytes
// there were.
func count(c net.Conn, s *set) error {
	var total uint64
	big := newSet(max(len(s.blocks[0]), 1<<20))
	for {
		n, err := c.Read(big.block())
		total += uint64(n)
		if errors.Is(err, io.EOF) {
			return json.NewEncoder(c).Encode(total)
		}
		if err != nil {
			return err
		}
	}
}

// DialTCP runs messages of this size against ServeTCP for a time: as fast as
// they go, or one at a time with an answer each.
func DialTCP(ctx context.Context, addr string, size int, latency bool, d time.Duration) (TCPResult, error) {
	r := TCPResult{Bytes: size}
	dialed, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return r, err
	}
	defer dialed.Close()
	c := dialed.(*net.TCPConn)
	kind := byte('b')
	if latency {
		kind = 'l'
	}
	if _, err := c.Write([]byte{kind, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)}); err != nil {
		return r, err
	}
	s, start := newSet(size), time.Now()
	if latency {
		err = pingPong(c, s, start, d, &r)
		return r, err
	}
	for n := 0; n&15 != 0 || time.Since(start) < d; n++ {
		if _, err := c.Write(s.block()); err != nil {
			return r, err
		}
	}
	if err := c.CloseWrite(); err != nil {
		return r, err
	}
	var total uint64
	if err := json.NewDecoder(c).Decode(&total); err != nil {
		return r, err
	}
	r.Gbps = float64(total) * 8 / (1 << 30) / time.Since(start).Seconds()
	return r, nil
}

func pingPong(c net.Conn, s *set, start time.Time, d time.Duration, r *TCPResult) error {
	samples := make([]time.Duration, 0, 1<<20)
	for before := start; before.Sub(start) < d && len(samples) < cap(samples); {
		b := s.block()
		if _, err := c.Write(b); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		now := time.Now()
		samples = append(samples, now.Sub(before)/2)
		before = now
	}
	slices.Sort(samples)
	us := func(p float64) float64 { return float64(samples[int(p*float64(len(samples)-1))]) / 1000 }
	r.Typical, r.P99 = us(0.5), us(0.99)
	return nil
}

// Memcpy returns the Gb/s (2^30 bits) at which one thread copies 1 MB blocks
// that cycle through 16 MB of source and 16 MB of destination.
func Memcpy(d time.Duration) float64 {
	from, to := newSet(1<<20), newSet(1<<20)
	start, n := time.Now(), 0
	for n&15 != 0 || time.Since(start) < d {
		copy(to.block(), from.block())
		n++
	}
	return float64(n) * 8 * (1 << 20) / (1 << 30) / time.Since(start).Seconds()
}
