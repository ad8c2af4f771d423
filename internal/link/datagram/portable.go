package datagram

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/offload"
)

// waitingFrames is how many frames may wait for Receive before more are dropped.
const waitingFrames = 256

// portableLink is the link over package net: one frame per call, and a goroutine that reads them into a bounded queue.
type portableLink struct {
	*station.Set
	peer
	cfg    Config
	caps   link.Capabilities
	conn   *net.UnixConn
	remote *net.UnixAddr
	write  []byte
	timer  *time.Timer
	probe  *time.Timer // when it is time to look for the other side
	reader sync.WaitGroup
	drops  atomic.Uint64

	mu    sync.Mutex // guards the following fields
	slots [waitingFrames][]byte
	head  int // next to be handed out
	out   int // slots before head that are handed out
	len   int
}

func openPortable(cfg Config) (link.Link, error) {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: cfg.Local, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("%s: Local %q: %w", name, cfg.Local, err)
	}
	l := &portableLink{cfg: cfg, conn: conn, remote: &net.UnixAddr{Name: cfg.Remote, Net: "unixgram"}}
	if l.cfg.Notify == nil {
		l.cfg.Notify = func() {}
	}
	l.timer = time.AfterFunc(time.Hour, l.cfg.Notify)
	l.timer.Stop()
	l.probe = time.AfterFunc(peerInterval, l.cfg.Notify)
	l.find()
	l.Set = station.New(station.Config{Name: name, Wire: func(f []byte) { _, _ = l.send(f) }, MTU: cfg.MTU, Promiscuous: cfg.Promiscuous,
		Arm: func(after time.Duration) {
			if l.timer.Stop(); after >= 0 {
				l.timer.Reset(after)
			}
		}})
	l.caps = link.Capabilities{MaxSegments: 1, Raw: true, MTU: cfg.MTU, Stations: l, Multicaster: l, Resolver: l, Carrier: l}
	for i := range l.slots {
		l.slots[i] = make([]byte, 0, cfg.MTU+extra+1)
	}
	if err := populate(l.Set, cfg.Stations); err != nil {
		_ = l.Close()
		return nil, err
	}
	l.reader.Go(l.read)
	return l, nil
}

// find looks whether anybody has the other side's socket, if it is time to.
func (l *portableLink) find() {
	if !l.due() {
		return
	}
	c, err := net.DialUnix("unixgram", nil, l.remote)
	if l.there = err == nil; l.there {
		_ = c.Close()
	}
	l.probe.Reset(peerInterval)
}

// send sends a frame. It waits for room for a moment, and not longer.
func (l *portableLink) send(f []byte) (int, error) {
	_ = l.conn.SetWriteDeadline(time.Now().Add(time.Millisecond))
	return l.conn.WriteToUnix(f, l.remote)
}

// read fills the queue until Close.
func (l *portableLink) read() {
	b := make([]byte, l.cfg.MTU+extra+1)
	for {
		n, _, err := l.conn.ReadFromUnix(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && l.push(b[:n]) {
			l.cfg.Notify()
		}
	}
}

// push copies a frame into the queue, and reports whether it is the only one.
func (l *portableLink) push(f []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out+l.len == waitingFrames {
		l.drops.Add(1)
		return false
	}
	i := (l.head + l.len) % waitingFrames
	l.slots[i] = append(l.slots[i][:0], f...)
	l.len++
	return l.len == 1
}

// Capabilities implements link.Link.
func (l *portableLink) Capabilities() link.Capabilities { return l.caps }

// Send implements link.Link.
func (l *portableLink) Send(frames []frame.Out) (int, error) { return l.SendEach(frames, l.one) }

// one sends a frame as one datagram.
func (l *portableLink) one(o *frame.Out) station.Outcome {
	l.write = append(append(append(l.write[:0], o.Head[o.HeadStart:o.HeadEnd]...), o.Payload...), o.Tail[:o.TailLen]...)
	switch _, err := l.send(l.write); {
	case err == nil:
		return station.Gone
	case errors.Is(err, os.ErrDeadlineExceeded):
		return station.Blocked
	}
	return station.Lost
}

// Receive implements link.Link.
func (l *portableLink) Receive(in []frame.In) (int, error) {
	if l.Ended() {
		return 0, net.ErrClosed
	}
	n := l.Looped(in)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.there = l.there || l.len > 0
	for l.out = 0; n < len(in) && l.len > 0; l.out++ {
		f := l.slots[l.head]
		n += l.Take(in[n:], f, offload.Task{}, len(f) <= l.cfg.MTU+extra)
		l.head = (l.head + 1) % waitingFrames
		l.len--
	}
	return n, nil
}

// Errors implements link.Link.
func (l *portableLink) Errors(out []link.Unreachable) int {
	if l.Ended() {
		return 0
	}
	l.find()
	l.Tend(false)
	return l.Set.Errors(out)
}

// Descriptors implements link.Link: there are none, Notify is called instead.
func (l *portableLink) Descriptors() []int { return nil }

// Stats implements link.Link.
func (l *portableLink) Stats() link.Stats {
	s := l.Set.Stats()
	s.ReceiveDrops += l.drops.Load()
	s.ReceiveBuffer = waitingFrames * (l.cfg.MTU + extra)
	return s
}

// Close implements link.Link.
func (l *portableLink) Close() error {
	if !l.End() {
		return nil
	}
	l.timer.Stop()
	l.probe.Stop()
	err := errors.Join(l.conn.Close(), os.Remove(l.cfg.Local))
	l.reader.Wait()
	return err
}
