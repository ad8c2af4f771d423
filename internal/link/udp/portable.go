package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
)

// portableLink is the link over package net: one datagram per call, and a goroutine that reads them into a
// bounded queue. It sends ECN and DSCP if the platform supports it, but receives neither those nor ICMP
// errors, nor multicast.
type portableLink struct {
	cfg  Config
	caps link.Capabilities
	ifi  string

	conn   *net.UDPConn
	pool   *pool
	sender portableSocket    // the receiving socket
	source []*portableSocket // the pool's by slot; nil: closed
	queue  inbox
	write  [maxDatagram]byte

	errs  [maxErrors]link.Unreachable
	nerrs int
	stats link.Stats

	closed  atomic.Bool
	readers sync.WaitGroup
}

func openPortable(cfg Config) (Link, error) {
	at := netip.AddrPortFrom(cfg.Addr, cfg.Port)
	conn, err := listen(cfg.Addr, cfg.Port)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &AddressInUseError{Addr: at, Owner: ownerOf(at)}
	}
	if err != nil {
		return nil, fmt.Errorf("udp link: %w", err)
	}
	l := &portableLink{cfg: cfg, conn: conn}
	l.caps = link.Capabilities{MaxSegments: 1, MTU: 1500}
	if ifi, ok := InterfaceOf(cfg.Addr); ok {
		l.caps.MTU, l.ifi = ifi.MTU, ifi.Name
	}
	l.sender.conn = conn
	l.pool = newPool(cfg, l.bindSource, l.unbindSource)
	l.setBuffers()
	l.queue.init(cfg.Notify, cfg.Addr)
	l.read(conn)
	return l, nil
}

// listen opens a socket whose packets are not fragmented, as far as the platform supports it.
func listen(addr netip.Addr, port uint16) (*net.UDPConn, error) {
	network := "udp6"
	if addr.Is4() {
		network = "udp4"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, port)))
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		// If it is refused, only peers that check the don't-fragment bit notice.
		_ = raw.Control(func(fd uintptr) { _ = dontFragment(fd, addr.Is4()) })
	}
	return conn, nil
}

// setBuffers requests large buffers; if refused, it tries smaller ones.
func (l *portableLink) setBuffers() {
	want := l.cfg.ReceiveBuffer
	if want == 0 {
		want = defaultReceiveBuffer
	}
	for ; want >= 64<<10; want /= 2 {
		if l.conn.SetReadBuffer(want) == nil {
			break
		}
		if l.cfg.ReceiveBuffer != 0 {
			return
		}
	}
	_ = l.conn.SetWriteBuffer(defaultSendBuffer)
	l.stats.ReceiveBuffer = want
}

// read starts the goroutine that fills the queue from a socket.
func (l *portableLink) read(conn *net.UDPConn) {
	l.readers.Go(func() {
		failures := 0
		for {
			err := l.queue.readFrom(conn)
			if err == nil {
				failures = 0
				continue
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Some platforms report an ICMP error for an earlier packet here.
			// A series of errors is something else: do not spin on them.
			if failures++; failures > maxErrors {
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
}

// Capabilities implements link.Link.
func (l *portableLink) Capabilities() link.Capabilities { return l.caps }

// Prepare implements link.Link.
func (l *portableLink) Prepare(r *frame.Route) error {
	if l.closed.Load() {
		return net.ErrClosed
	}
	r.Dst = r.Dst.Unmap()
	if err := checkDestination(r.Dst, l.cfg.Addr); err != nil {
		return err
	}
	if r.DstPort == 0 {
		r.DstPort = l.cfg.Port
	}
	if !r.Src.IsValid() {
		r.Src = l.cfg.Addr
	}
	l.pool.choose(r)
	return nil
}

// Send implements link.Link.
func (l *portableLink) Send(frames []frame.Out) (int, error) {
	if l.closed.Load() {
		return 0, net.ErrClosed
	}
	for i := range frames {
		l.send(&frames[i])
	}
	return len(frames), nil
}

func (l *portableLink) send(o *frame.Out) {
	r := o.Route
	if l.pool.path(r) == nil && l.Prepare(r) != nil || o.Len() > len(l.write) {
		l.refuse(o, link.HostUnreachable)
		return
	}
	b := append(l.write[:0], o.Head[o.HeadStart:o.HeadEnd]...)
	b = append(b, o.Payload...)
	b = append(b, o.Tail[:o.TailLen]...)
	s := l.socket(l.pool.path(r).socket)
	s.set(r, l.cfg.Addr.Is4())
	n, err := s.conn.WriteToUDPAddrPort(b, netip.AddrPortFrom(r.Dst, r.DstPort))
	if err != nil {
		l.refuse(o, portableRefusal(err))
		return
	}
	l.stats.SentPackets++
	l.stats.SentBursts++
	l.stats.SentBytes += uint64(n)
}

// portableRefusal returns what an error says about the destination.
func portableRefusal(err error) link.UnreachableKind {
	switch {
	case errors.Is(err, syscall.EMSGSIZE):
		return link.PacketTooBig
	case errors.Is(err, syscall.ENETUNREACH):
		return link.NetworkUnreachable
	case errors.Is(err, syscall.EHOSTUNREACH):
		return link.HostUnreachable
	case errors.Is(err, syscall.ECONNREFUSED):
		return link.PortUnreachable
	}
	return 0
}

func (l *portableLink) refuse(o *frame.Out, kind link.UnreachableKind) {
	l.stats.SendErrors++
	if kind == 0 {
		return
	}
	if l.nerrs == len(l.errs) {
		l.stats.ErrorsLost++
		return
	}
	u := link.Unreachable{Dst: o.Route.Dst, Kind: kind}
	u.Quote(o.Head[o.HeadStart:o.HeadEnd], o.Payload)
	if kind == link.PacketTooBig {
		u.MTU = l.caps.MTU
	}
	l.errs[l.nerrs] = u
	l.nerrs++
}

// Receive implements link.Link.
func (l *portableLink) Receive(in []frame.In) (int, error) {
	if l.closed.Load() {
		return 0, net.ErrClosed
	}
	n := l.queue.pop(in)
	for i := range in[:n] {
		l.stats.ReceivedBytes += uint64(len(in[i].Data))
	}
	l.stats.ReceivedPackets += uint64(n)
	return n, nil
}

// Errors implements link.Link: it only reports what the system refused to send.
func (l *portableLink) Errors(out []link.Unreachable) int {
	n := copy(out, l.errs[:l.nerrs])
	l.nerrs = copy(l.errs[:], l.errs[n:l.nerrs])
	return n
}

// Descriptors implements link.Link: there are none; Notify is called instead.
func (l *portableLink) Descriptors() []int { return nil }

// Stats implements link.Link.
func (l *portableLink) Stats() link.Stats {
	s := l.stats
	s.ReceiveDrops = l.queue.drops.Load()
	s.ReceiveTruncated = l.queue.truncated.Load()
	_, s.OtherSourcePorts = l.pool.state()
	return s
}

// SetMTU implements Link.
func (l *portableLink) SetMTU(mtu int) { l.caps.MTU = mtu }

// Status implements Link.
func (l *portableLink) Status() Status {
	bound, _ := l.pool.state()
	s := Status{
		Addr: netip.AddrPortFrom(l.cfg.Addr, l.cfg.Port), Method: "portable",
		Interface: l.ifi, MTU: l.caps.MTU, ReceiveBuffer: l.stats.ReceiveBuffer, SendBuffer: defaultSendBuffer,
		SourcePorts: l.cfg.sourcePortRule(len(bound)), BoundSourcePorts: bound,
	}
	return s
}

// Close implements link.Link.
func (l *portableLink) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.conn.Close()
	l.pool.close()
	l.readers.Wait()
	return nil
}
