package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/umad/agent"
	"github.com/softvpi/softvpi/internal/umad/socket"
)

// maxClients limits the number of open connections.
const maxClients = 4096

// Server lets programs send and receive management datagrams at the ports of a fabric.
type Server struct {
	host  Host
	path  string
	start time.Time
	done  chan struct{}

	listener, epoll, wake, watch int
	buffer                       [socket.MaxMessage + 1]byte

	mu      sync.Mutex
	ids     agent.IDs
	places  map[fabric.Place]*place
	clients map[int]*client // by file descriptor
	files   map[int]*manager
	busy    bool // the loop is working, and will look for what to send before it waits
	stopped bool
	next    clock.Time // the earliest of the ports' deadlines, or earlier
	until   clock.Time // when the loop wakes up
	ready   []*place   // with something to send
	sent    agent.Packet
	came    agent.Packet // being passed to a port
	message agent.Message
	frame   []byte
	// gathering lists clients for which the loop holds MADs back, to write several at once.
	gathering []*client
	// What programs have not read, in bytes and memory files, and how many messages were dropped because of it.
	unread, unreadFiles int
	dropped             uint64
}

// place is a port of the fabric that a program has opened.
type place struct {
	*agent.Port
	at      fabric.Place
	open    int // files
	waiting bool
}

// Listen serves the management datagrams of a fabric at the path of a socket, only for this process's
// user. A stale socket of an earlier process is replaced.
func Listen(path string, h Host) (*Server, error) {
	s := &Server{host: h, path: path, start: time.Now(), done: make(chan struct{}), next: clock.Never, listener: -1, epoll: -1, wake: -1,
		watch:  -1,
		places: map[fabric.Place]*place{}, clients: map[int]*client{}, files: map[int]*manager{}}
	if err := s.listen(); err != nil {
		s.closeAll()
		return nil, fmt.Errorf("management datagrams at %s: %w", path, err)
	}
	go s.run()
	return s, nil
}

// Path returns where the server listens; empty for nil.
func (s *Server) Path() string {
	if s == nil {
		return ""
	}
	return s.path
}

func (s *Server) now() clock.Time { return clock.Time(time.Since(s.start)) }

func (s *Server) listen() (err error) {
	if err := paths.Room(s.path); err != nil {
		return err
	}
	if c, err := net.Dial("unixpacket", s.path); err == nil {
		c.Close()
		return unix.EADDRINUSE
	} else if errors.Is(err, unix.ECONNREFUSED) {
		os.Remove(s.path)
	}
	if s.listener, err = unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return err
	}
	if err = unix.Bind(s.listener, &unix.SockaddrUnix{Name: s.path}); err != nil {
		unix.Close(s.listener)
		s.listener = -1
		return err
	}
	if err = os.Chmod(s.path, 0o600); err != nil {
		return err
	}
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if s.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	if s.watch, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		return err
	}
	for _, fd := range [...]int{s.listener, s.wake, s.watch} {
		if err = s.add(fd); err != nil {
			return err
		}
	}
	return unix.Listen(s.listener, 128)
}

func (s *Server) add(fd int) error {
	return unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// Close ends the server and all connections, and removes the files that it created. On nil it does
// nothing.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.poke()
	<-s.done
	return nil
}

func (s *Server) poke() {
	if s.wake >= 0 {
		_, _ = unix.Write(s.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// closeAll closes what is open.
func (s *Server) closeAll() {
	for _, m := range s.files {
		os.Remove(m.path)
	}
	if s.listener >= 0 {
		os.Remove(s.path)
	}
	for _, fd := range [...]int{s.listener, s.epoll, s.wake, s.watch} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// run is the loop: one thread that waits for all sockets and handles them itself.
func (s *Server) run() {
	defer close(s.done)
	var events [64]unix.EpollEvent
	for {
		n, err := unix.EpollWait(s.epoll, events[:], s.patience())
		if err != nil && !errors.Is(err, unix.EINTR) {
			n = 0
		}
		s.mu.Lock()
		s.busy = true
		stopped := s.stopped
		s.mu.Unlock()
		if stopped {
			break
		}
		for _, e := range events[:max(n, 0)] {
			s.event(int(e.Fd), e.Events)
			s.carry()
			s.release()
		}
		s.advance()
		s.carry()
	}
	s.mu.Lock()
	all := make([]*client, 0, len(s.clients))
	for _, c := range s.clients {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		s.end(c)
	}
	s.dismissAll()
	s.closeAll()
}

// patience returns how long to wait for events, in milliseconds. From then on the loop counts as idle.
func (s *Server) patience() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	s.releaseAll()
	if len(s.ready) > 0 {
		return 0
	}
	s.until = s.next
	if s.next == clock.Never {
		return -1
	}
	wait := s.next.Sub(s.now())
	return int(max(0, min(wait, time.Hour)+time.Millisecond-1) / time.Millisecond)
}

func (s *Server) event(fd int, events uint32) {
	switch fd {
	case s.listener:
		s.accept()
	case s.wake:
		var b [8]byte
		_, _ = unix.Read(s.wake, b[:])
	case s.watch:
		s.watched()
	default:
		s.mu.Lock()
		c := s.clients[fd]
		s.mu.Unlock()
		if c != nil {
			s.serve(c, events)
		}
	}
}

func (s *Server) accept() {
	for {
		fd, _, err := unix.Accept4(s.listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err != nil {
			return
		}
		s.mu.Lock()
		full := len(s.clients) >= maxClients
		if !full {
			s.clients[fd] = &client{fd: fd}
		}
		s.mu.Unlock()
		if full || s.add(fd) != nil {
			s.mu.Lock()
			delete(s.clients, fd)
			s.mu.Unlock()
			unix.Close(fd)
		}
	}
}

// changed notes that something happened at a port: it may have something to send, or another deadline. The
// caller holds the lock.
func (s *Server) changed(p *place) {
	s.next = clock.Min(s.next, p.Deadline())
	if p.Waiting() && !p.waiting {
		p.waiting = true
		s.ready = append(s.ready, p)
	}
}

// advance does what is due at all ports.
func (s *Server) advance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Before(s.next) {
		return
	}
	s.next = clock.Never
	for _, p := range s.places {
		p.Advance(now)
		s.changed(p)
	}
}

// carry sends what the ports have to send. It does not hold the lock while a packet travels, because that
// may come back here.
func (s *Server) carry() {
	for {
		s.mu.Lock()
		if len(s.ready) == 0 {
			s.mu.Unlock()
			return
		}
		p := s.ready[0]
		if !p.Transmit(&s.sent) {
			p.waiting = false
			s.ready = s.ready[1:]
			if len(s.ready) == 0 {
				s.ready = nil
			}
			s.mu.Unlock()
			continue
		}
		at := p.at
		s.mu.Unlock()
		s.host.CarryOn(at, &s.sent.Packet)
	}
}

// Take passes a MAD that arrived at a port to the agent there that wants it; false: there is none.
func (s *Server) Take(_ clock.Time, at fabric.Place, p *fabric.Packet) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	port := s.places[at]
	if port == nil || port.Quiet() {
		return false
	}
	k := &s.came
	k.Packet, k.HasGRH = *p, false
	if p == &s.sent.Packet { // sent by a program of ours, or an immediate response to that
		k.HasGRH, k.GRH = s.sent.HasGRH, s.sent.GRH
	}
	taken := port.Receive(s.now(), k)
	s.changed(port)
	if !s.busy && (len(s.ready) > 0 || s.next.Before(s.until)) {
		s.poke()
	}
	return taken
}
