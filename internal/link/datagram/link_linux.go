package datagram

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/batch"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/offload"
)

// receiveRounds is how many batches one Receive looks through that are for others.
const receiveRounds = 4

// stuck measures for how long the other side has taken nothing. Only time in which it is looked at again and again counts: a process
// that has had no processor itself, or a machine that has stood still, knows nothing of the other side's patience.
type stuck struct {
	looked time.Time // last; zero: it takes what it gets
	waited time.Duration
}

// look counts a look at which it took nothing, and reports whether that has lasted longer than patience. Two looks count for no more
// than a fifth of it.
func (s *stuck) look(now time.Time, patience time.Duration) bool {
	if !s.looked.IsZero() {
		s.waited += min(now.Sub(s.looked), patience/5)
	}
	s.looked = now
	return s.waited > patience
}

// socketLink is the link that uses raw system calls.
type socketLink struct {
	*station.Set
	peer
	cfg   Config
	caps  link.Capabilities
	fd    int
	alarm *station.Alarm
	out   batch.Out
	wire  batch.Out // of the set
	in    *batch.In
	name  unix.RawSockaddrUnix
	stuck stuck
	probe int // connects to the other side's socket, to know that somebody has it
	timer *station.Alarm
}

func open(cfg Config) (link.Link, error) {
	l := &socketLink{cfg: cfg, fd: -1, probe: -1, in: batch.NewIn(cfg.MTU+extra, 0)}
	if err := l.open(); err != nil {
		_ = l.release()
		return nil, err
	}
	return l, nil
}

func (l *socketLink) open() (err error) {
	if l.alarm, err = station.NewAlarm(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	l.Set = station.New(station.Config{Name: name, Wire: func(f []byte) { l.wire.One(l.fd, f) }, MTU: l.cfg.MTU,
		Promiscuous: l.cfg.Promiscuous, Arm: l.alarm.Arm})
	l.caps = link.Capabilities{MaxSegments: 1, Raw: true, MTU: l.cfg.MTU, Stations: l, Multicaster: l, Resolver: l, Carrier: l}
	if l.timer, err = station.NewAlarm(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if l.probe, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return fmt.Errorf("%s: %w", name, os.NewSyscallError("socket", err))
	}
	l.find()
	l.name.Family = unix.AF_UNIX
	for i := range len(l.cfg.Remote) {
		l.name.Path[i] = int8(l.cfg.Remote[i])
	}
	raw := (*[unix.SizeofSockaddrUnix]byte)(unsafe.Pointer(&l.name))[:int(unsafe.Offsetof(l.name.Path))+len(l.cfg.Remote)+1]
	l.out.To(raw)
	l.wire.To(raw)
	if l.fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return fmt.Errorf("%s: %w", name, os.NewSyscallError("socket", err))
	}
	if err := unix.Bind(l.fd, &unix.SockaddrUnix{Name: l.cfg.Local}); err != nil {
		unix.Close(l.fd)
		l.fd = -1 // the path is not this link's
		return fmt.Errorf("%s: Local %q: %w", name, l.cfg.Local, os.NewSyscallError("bind", err))
	}
	return populate(l.Set, l.cfg.Stations)
}

// find looks whether anybody has the other side's socket, if it is time to. One that is connected to another refuses the probe.
func (l *socketLink) find() {
	if !l.due() {
		return
	}
	l.timer.Hush()
	err := unix.Connect(l.probe, &unix.SockaddrUnix{Name: l.cfg.Remote})
	l.there = err == nil || errors.Is(err, unix.EPERM)
	l.timer.Arm(peerInterval)
}

// Capabilities implements link.Link.
func (l *socketLink) Capabilities() link.Capabilities { return l.caps }

// Send implements link.Link. The queue of the other side is short (net.unix.max_dgram_qlen); if it takes nothing for long,
// as a virtual machine that is stopped, what is sent is lost.
func (l *socketLink) Send(frames []frame.Out) (int, error) {
	if l.Ended() {
		return 0, net.ErrClosed
	}
	n := l.out.Send(l.Set, l.fd, frames)
	switch {
	case n > 0 || len(frames) == 0:
		l.stuck = stuck{}
	case l.stuck.look(time.Now(), l.cfg.Patience):
		for i := range frames {
			l.Refused(&frames[i], 0)
		}
		return len(frames), nil
	}
	return n, nil
}

// Receive implements link.Link.
func (l *socketLink) Receive(in []frame.In) (int, error) {
	if l.Ended() {
		return 0, net.ErrClosed
	}
	n := l.Looped(in)
	for range receiveRounds {
		got, _ := l.in.Receive(l.fd, len(in)-n)
		l.there = l.there || got > 0
		before := n
		for i := range got {
			f, whole := l.in.Frame(i)
			if n += l.Take(in[n:], f, offload.Task{}, whole); n == len(in) {
				break
			}
		}
		if n == len(in) || n > before || got < batch.Most { // those handed out stay where they are until the next call
			break
		}
	}
	return n, nil
}

// Errors implements link.Link.
func (l *socketLink) Errors(out []link.Unreachable) int {
	if l.Ended() {
		return 0
	}
	l.alarm.Hush()
	l.find()
	l.Tend(false)
	return l.Set.Errors(out)
}

// Descriptors implements link.Link.
func (l *socketLink) Descriptors() []int {
	return []int{l.fd, l.alarm.Descriptor(), l.timer.Descriptor()}
}

// Stats implements link.Link.
func (l *socketLink) Stats() link.Stats {
	s := l.Set.Stats()
	if n, err := unix.GetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil {
		s.ReceiveBuffer = n
	}
	return s
}

// Close implements link.Link.
func (l *socketLink) Close() error {
	if !l.End() {
		return nil
	}
	return l.release()
}

func (l *socketLink) release() (err error) {
	if l.fd >= 0 {
		_ = unix.Shutdown(l.fd, unix.SHUT_RDWR) // wakes whoever polls it
		unix.Close(l.fd)
		l.fd = -1
		err = os.Remove(l.cfg.Local)
	}
	if l.probe >= 0 {
		unix.Close(l.probe)
		l.probe = -1
	}
	for _, a := range []*station.Alarm{l.alarm, l.timer} {
		if a != nil {
			a.Close()
		}
	}
	return err
}
