package udp

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
)

// socketLink is the link that uses raw system calls.
type socketLink struct {
	cfg   Config
	v4    bool
	scope uint32 // interface index of a link-local address
	caps  link.Capabilities
	ifi   string
	index uint32 // of the interface with the address when the link was opened, 0 if there was none

	fd      int // receives, and sends packets without a source port of their own
	watch   int // epoll of the other sockets
	gso     bool
	gro     bool
	receive receiver
	stage   stage
	pool    *pool
	sources []int // the pool's sockets by slot; -1: closed
	groups  []group
	errors  errorQueue
	single  map[netip.Addr]bool // destinations whose device refuses segmentation
	frames  frames
	stats   link.Stats

	receiveBuffer, sendBuffer int

	closed bool

	send sender // last, so that what precedes it shares pages
}

func open(cfg Config) (Link, error) {
	l := &socketLink{cfg: cfg, v4: cfg.Addr.Is4(), fd: -1, watch: -1, stage: stage{pipe: noPipe}, single: map[netip.Addr]bool{}}
	l.caps = link.Capabilities{MaxSegments: 1, SegmentIDs: true, MTU: 1500, Multicaster: l, Resolver: l}
	ifi, ok := InterfaceOf(cfg.Addr)
	if ok {
		l.caps.MTU, l.ifi = ifi.MTU, ifi.Name
	}
	if err := l.openSockets(ifi.Index); err != nil {
		l.release()
		return nil, err
	}
	if l.gso {
		l.caps.MaxSegments, l.caps.MaxBurst = maxSegments, maxBurst
	}
	l.send.init()
	if l.stage.init(l.gso) {
		l.caps.Stager = l
	}
	if l.receive.intake != nil {
		l.caps.Sleeper = l
	}
	l.receive.batch.init(cfg, l.gro)
	l.pool = newPool(cfg, l.bindSource, l.unbindSource)
	return l, nil
}

// openSockets opens what a link needs from the start. ifi is the index of the interface with the address,
// 0 if there is none.
func (l *socketLink) openSockets(ifi int) (err error) {
	if l.scope, err = scope(l.cfg.Addr.Zone()); err != nil {
		return err
	}
	if l.index = l.scope; l.index == 0 {
		l.index = uint32(ifi)
	}
	if l.fd, err = newSocket(l.v4); err != nil {
		return err
	}
	if err = setReceiver(l.fd, l.v4); err != nil {
		return err
	}
	size := l.cfg.ReceiveBuffer
	if size == 0 {
		size = defaultReceiveBuffer
	}
	l.receiveBuffer = setBuffer(l.fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, size)
	l.sendBuffer = setBuffer(l.fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, defaultSendBuffer)
	l.setMulticastInterface(l.fd)
	if l.watch, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("udp link: %w", os.NewSyscallError("epoll_create1", err))
	}
	// A kernel without them returns ENOPROTOOPT.
	if !l.cfg.NoSegmentation {
		_, err := unix.GetsockoptInt(l.fd, unix.SOL_UDP, unix.UDP_SEGMENT)
		l.gso = err == nil
	}
	if !l.cfg.NoCoalescing {
		l.gro = unix.SetsockoptInt(l.fd, unix.SOL_UDP, unix.UDP_GRO, 1) == nil
	}
	if err = l.openFrames(ifi); err != nil { // before anything arrives, so that it is counted
		return err
	}
	if err = l.take(); err != nil {
		return bindError(l.cfg, err)
	}
	if l.frames.port != nil {
		l.frames.port.Start()
	}
	return nil
}

// An address in use is tried again for a quarter of a second. A program that this process starts has copies of its descriptors until it
// has begun, so also of a socket that had the address and was closed meanwhile, as when an adapter restarts.
const (
	takeTries = 50
	takePause = 5 * time.Millisecond
)

// take binds the link's socket.
func (l *socketLink) take() (err error) {
	for range takeTries {
		if err = bind(l.fd, l.cfg.Addr, l.cfg.Port, l.scope); err != unix.EADDRINUSE {
			break
		}
		time.Sleep(takePause)
	}
	return err
}

// bindError says who has the address if it is taken.
func bindError(cfg Config, err error) error {
	at := netip.AddrPortFrom(cfg.Addr, cfg.Port)
	if err == unix.EADDRINUSE {
		return &AddressInUseError{Addr: at, Owner: ownerOf(at)}
	}
	return fmt.Errorf("udp link: bind %v: %w", at, err)
}

// Close implements link.Link. Whoever waits on the descriptors wakes up.
func (l *socketLink) Close() error {
	if !l.closed {
		l.closed = true
		l.release()
	}
	return nil
}

func (l *socketLink) release() {
	if l.pool != nil {
		l.pool.close()
	}
	for i := range l.groups {
		unix.Close(l.groups[i].fd)
	}
	if l.fd >= 0 {
		// Returns ENOTCONN, but wakes whoever polls the socket.
		_ = unix.Shutdown(l.fd, unix.SHUT_RDWR)
		unix.Close(l.fd)
	}
	if l.watch >= 0 {
		unix.Close(l.watch)
	}
	if l.frames.port != nil {
		l.frames.port.Close()
	}
	l.stage.release()
}

// Capabilities implements link.Link.
func (l *socketLink) Capabilities() link.Capabilities { return l.caps }

// Descriptors implements link.Link: the receiving socket, and an epoll of the others.
func (l *socketLink) Descriptors() []int { return []int{l.fd, l.watch} }

// Prepare implements link.Link.
func (l *socketLink) Prepare(r *frame.Route) error {
	if l.closed {
		return net.ErrClosed
	}
	return l.prepare(r)
}

func (l *socketLink) prepare(r *frame.Route) error {
	dst := r.Dst.Unmap()
	if err := checkDestination(dst, l.cfg.Addr); err != nil {
		return err
	}
	r.Dst = dst
	if r.DstPort == 0 {
		r.DstPort = l.cfg.Port
	}
	if !r.Src.IsValid() {
		r.Src = l.cfg.Addr
	}
	id := uint32(0)
	if dst.IsLinkLocalUnicast() || dst.IsLinkLocalMulticast() {
		id = l.scope
	}
	w := l.pool.choose(r)
	w.length = putSockaddr(&w.sockaddr, dst, r.DstPort, id)
	w.single = l.single[dst]
	if l.frames.port != nil {
		w.hop = l.frames.port.Prepare(r)
	}
	return nil
}

// Stats implements link.Link.
func (l *socketLink) Stats() link.Stats {
	if l.closed {
		return l.stats
	}
	l.stats.ReceiveBuffer = l.receiveBuffer
	s := l.stats
	_, s.OtherSourcePorts = l.pool.state()
	n, _ := socketDrops(l.fd) // 0 if the system does not say
	l.countFrames(&s, uint64(n))
	return s
}

// SetMTU implements Link.
func (l *socketLink) SetMTU(mtu int) { l.caps.MTU = mtu }

// Status implements Link.
func (l *socketLink) Status() Status {
	bound, _ := l.pool.state()
	s := Status{
		Addr: netip.AddrPortFrom(l.cfg.Addr, l.cfg.Port), Method: "sendmmsg",
		Segmentation: l.gso, Coalescing: l.gro, Interface: l.ifi, MTU: l.caps.MTU,
		ReceiveBuffer: l.receiveBuffer, SendBuffer: l.sendBuffer,
		SourcePorts: l.cfg.sourcePortRule(len(bound)), BoundSourcePorts: bound,
		SingleDestinations: len(l.single), Frames: l.frames.status(),
	}
	for _, g := range l.groups {
		s.Groups = append(s.Groups, g.addr)
	}
	return s
}
