package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"time"
)

// TCPResult is the result of the plain TCP sender.
type TCPResult struct {
	Bytes int     `json:"bytes"` // of a message
	Gbps  float64 `json:"gbps"`  // 2^30 bits a second, as delivered
}

// ServeTCP serves one client of DialTCP: it counts what it receives.
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
	return count(c)
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
	for i := range mem { // untouched pages would all map to a single page of zeros
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

// count reads until the end and tells the client how many bytes there were.
func count(c net.Conn) error {
	var total uint64
	big := newSet(1 << 20)
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

// DialTCP sends messages of this size to ServeTCP for a time, as fast as possible.
func DialTCP(ctx context.Context, addr string, size int, d time.Duration) (TCPResult, error) {
	r := TCPResult{Bytes: size}
	dialed, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return r, err
	}
	defer dialed.Close()
	c := dialed.(*net.TCPConn)
	s, start := newSet(size), time.Now()
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

// memcpy returns the Gb/s (2^30 bits) at which one thread copies 1 MB blocks that cycle through 16 MB of
// source and 16 MB of destination.
func memcpy(d time.Duration) float64 {
	from, to := newSet(1<<20), newSet(1<<20)
	start, n := time.Now(), 0
	for n&15 != 0 || time.Since(start) < d {
		copy(to.block(), from.block())
		n++
	}
	return float64(n) * 8 * (1 << 20) / (1 << 30) / time.Since(start).Seconds()
}
