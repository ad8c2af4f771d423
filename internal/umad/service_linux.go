package umad

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/os/seqpacket"
	"github.com/softvpi/softvpi/internal/umad/agent"
	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// servicePatience is how long to wait for an answer of the service.
const servicePatience = 10 * time.Second

// openIBOUI is the organisation whose vendor classes the diagnostic tools use.
const openIBOUI = 0x001405

// service is an open port of a fabric's management service. Its agents only pass MADs on: the user of the
// transport matches answers.
//
// Its socket is read by a blocking system call, not by the runtime's poller, because waking up through
// that takes longer than an answer. A message holds several MADs if there are several. What is sent
// between two calls of Receive that return MADs of the same message is collected, and sent after the last
// of them has been returned.
type service struct {
	fd      int          // -1: none
	life    sync.RWMutex // held while fd is in use
	ended   atomic.Bool
	manager *os.File // open as long as the port is one with a subnet manager
	agents  [2]uint32

	sending sync.Mutex
	many    bool   // Receive is in the middle of a message
	out     []byte // a message with several MADs

	in   []byte // the received message, and the rest of it
	left []byte
}

// dialService opens a port.
func dialService(o ServiceOptions) (Transport, Device, error) {
	if len(o.Node) >= socket.NodeLen || len(o.Adapter) >= socket.NameLen {
		return nil, Device{}, fmt.Errorf("the node is %q and the adapter %q; allowed: up to %d and %d characters", o.Node, o.Adapter,
			socket.NodeLen-1, socket.NameLen-1)
	}
	r := socket.Request{Node: o.Node, Name: o.Adapter, Port: -1}
	if o.Port > 0 {
		r.Port = int32(o.Port)
	}
	d, err := describe(o.Socket, r)
	if err != nil {
		return nil, d, err
	}
	r.Port = int32(d.PortNum)
	s := &service{fd: -1, in: make([]byte, socket.MaxMessage), out: make([]byte, socket.SendLen,
		socket.SendLen+socket.Together*socket.EachLen)}
	if err := s.open(o, r); err != nil {
		s.Close()
		return nil, d, err
	}
	return s, d, nil
}

// describe asks what is known about an adapter and its port.
func describe(path string, r socket.Request) (d Device, err error) {
	r.Kind = socket.List
	names, err := askService(path, r)
	if err != nil {
		return d, err
	}
	name := r.Name
	if name == "" {
		first, _, _ := bytes.Cut(names[:min(len(names), socket.NameLen)], []byte{0})
		name = string(first)
	}
	r.Kind = socket.Adapter
	b, err := askService(path, r)
	if err != nil {
		return d, err
	}
	a, ok := socket.ParseAdapter(b)
	r.Kind = socket.Port
	if b, err = askService(path, r); err != nil {
		return d, err
	}
	p, ok2 := socket.ParsePort(b)
	if !ok || !ok2 {
		return d, errAnswer
	}
	return device(name, &a, &p)
}

var errAnswer = errors.New("the answer does not follow its protocol")

// askService sends one query and returns what follows the head of the answer.
func askService(path string, r socket.Request) ([]byte, error) {
	if err := paths.Own(path); err != nil {
		return nil, err
	}
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Write(r.Append(nil)); err != nil {
		return nil, err
	}
	_, b, err := serviceAnswer(c)
	return b, err
}

// serviceAnswer reads an answer: its number, and what follows it.
func serviceAnswer(c net.Conn) (uint32, []byte, error) {
	if err := c.SetReadDeadline(time.Now().Add(servicePatience)); err != nil {
		return 0, nil, err
	}
	b := make([]byte, 4096)
	n, err := seqpacket.Read(c, b)
	if err != nil {
		return 0, nil, err
	}
	return parseAnswer(b[:n])
}

// parseAnswer parses an answer: its number, and what follows it.
func parseAnswer(b []byte) (uint32, []byte, error) {
	errno, value, ok := socket.ParseAnswer(b)
	switch {
	case !ok:
		return 0, nil, errAnswer
	case syscall.Errno(errno) == unix.ENODEV:
		return 0, nil, errors.New("there is no such node or adapter")
	case errno != 0:
		return 0, nil, syscall.Errno(errno)
	}
	return value, b[socket.AnswerLen:], nil
}

// open opens the port with an agent for each of its queue pairs.
func (s *service) open(o ServiceOptions, r socket.Request) (err error) {
	if err := paths.Own(o.Socket); err != nil {
		return err
	}
	if s.fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0); err != nil {
		return os.NewSyscallError("socket", err)
	}
	if err := unix.Connect(s.fd, &unix.SockaddrUnix{Name: o.Socket}); err != nil {
		return os.NewSyscallError("connect", err)
	}
	r.Kind = socket.OpenMany
	if err := s.write(r.Append(nil), nil); err != nil {
		return err
	}
	n, err := s.read()
	if err != nil {
		return err
	}
	if _, _, err := parseAnswer(s.in[:n]); err != nil {
		return err
	}
	for qpn := range s.agents {
		if s.agents[qpn], err = s.register(&agent.Registration{QPN: ib.QPN(qpn), Raw: true}); err != nil {
			return err
		}
	}
	if !o.Manager {
		return nil
	}
	for _, class := range [...]uint8{mad.ClassSubnetDir, mad.ClassSubnetLID, mad.ClassSubnetAdm} {
		if err := s.listen(class); err != nil {
			return err
		}
	}
	r.Kind = socket.ManagerAt
	path, err := askService(o.Socket, r)
	if err != nil {
		return err
	}
	s.manager, err = os.OpenFile(string(path), os.O_RDONLY|unix.O_NONBLOCK, 0)
	return err
}

// register registers an agent. The answer arrives on a socket of its own, because MADs may arrive on the
// port's.
func (s *service) register(r *agent.Registration) (uint32, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	own := os.NewFile(uintptr(pair[0]), "answer")
	c, err := net.FileConn(own)
	own.Close()
	if err != nil {
		unix.Close(pair[1])
		return 0, err
	}
	defer c.Close()
	err = s.write(socket.AppendRegistration(nil, r), unix.UnixRights(pair[1]))
	unix.Close(pair[1])
	if err != nil {
		return 0, err
	}
	id, _, err := serviceAnswer(c)
	if err != nil {
		return 0, fmt.Errorf("an agent of class %#02x: %w; another program on the port may have registered it", r.Class, err)
	}
	return id, nil
}

// listen makes the port receive the requests of a class.
func (s *service) listen(class uint8) error {
	r := agent.Registration{QPN: GSIQP, Class: class, Version: 1, Raw: true, Methods: [2]uint64{^uint64(1), ^uint64(0)}}
	switch {
	case class == mad.ClassSubnetDir || class == mad.ClassSubnetLID:
		r.QPN = SMIQP
	case class == mad.ClassSubnetAdm:
		r.Version = mad.ClassVersionSA
	case class >= 0x30 && class <= 0x4f:
		r.OUI = openIBOUI
	}
	_, err := s.register(&r)
	return err
}

// read waits for a message.
func (s *service) read() (int, error) {
	s.life.RLock()
	defer s.life.RUnlock()
	for !s.ended.Load() {
		n, err := unix.Read(s.fd, s.in)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
	return 0, ErrClosed
}

// write sends a message, with descriptors if any.
func (s *service) write(b, rights []byte) error {
	s.life.RLock()
	defer s.life.RUnlock()
	for !s.ended.Load() {
		_, err := unix.SendmsgN(s.fd, b, rights, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("sendmsg", err)
		}
	}
	return ErrClosed
}

// Send implements Transport.
func (s *service) Send(d *Datagram) error { return s.send(d, false) }

// Gather implements Gatherer.
func (s *service) Gather(d *Datagram) error { return s.send(d, true) }

// Flush implements Gatherer.
func (s *service) Flush() error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.flush()
}

// send passes a MAD to the fabric, or keeps it until there are several; gather: the caller promises to flush.
func (s *service) send(d *Datagram, gather bool) error {
	h := agent.Header{Agent: s.agents[d.LocalQP&1], Length: mad.Len, QPN: d.Remote.QP, LID: d.Remote.LID, SL: d.Remote.SL,
		PKeyIndex: d.Remote.PKeyIndex}
	if d.Remote.QP != SMIQP {
		h.QKey = uint32(ib.QKeyGSI)
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	s.out = append(h.Append(s.out), d.MAD[:]...)
	if (gather || s.many) && len(s.out) < socket.SendLen+socket.Together*socket.EachLen {
		return nil
	}
	return s.flush()
}

// flush sends the collected message. The caller holds sending.
func (s *service) flush() error {
	kind := uint32(socket.Send)
	switch n := (len(s.out) - socket.SendLen) / socket.EachLen; {
	case n == 0:
		return nil
	case n > 1:
		kind = socket.SendMany
	}
	binary.LittleEndian.PutUint32(s.out, kind)
	err := s.write(s.out, nil)
	s.out = s.out[:socket.SendLen]
	return err
}

// Receive implements Transport.
func (s *service) Receive(d *Datagram) error {
	if len(s.left) == 0 {
		if err := s.receive(); err != nil {
			return err
		}
	}
	h := agent.ParseHeader(s.left)
	b := s.left[agent.HeaderLen:h.Length]
	s.left = s.left[h.Length:]
	if len(s.left) > 0 && !enough(s.left) {
		return errAnswer
	}
	clear(d.MAD[copy(d.MAD[:], b):])
	d.Remote, d.Failed, d.Length, d.Records = Address{LID: h.LID, QP: h.QPN, SL: h.SL, PKeyIndex: h.PKeyIndex}, h.Status != 0, 0, nil
	d.LocalQP = GSIQP
	if c := d.MAD[1]; c == mad.ClassSubnetDir || c == mad.ClassSubnetLID {
		d.LocalQP = SMIQP
	}
	return nil
}

// receive waits for the next message with MADs. It first sends what was collected.
func (s *service) receive() error {
	s.sending.Lock()
	s.many = false
	err := s.flush()
	s.sending.Unlock()
	if err != nil {
		return err
	}
	n, err := s.read()
	if err != nil {
		return err
	}
	if s.left = s.in[:n]; !enough(s.left) {
		return errAnswer
	}
	if n >= 2*socket.EachLen {
		s.sending.Lock()
		s.many = true
		s.sending.Unlock()
	}
	return nil
}

// enough reports whether a message begins with a complete MAD.
func enough(b []byte) bool {
	if len(b) < agent.HeaderLen+mad.HeaderLen {
		return false
	}
	n := agent.ParseHeader(b).Length
	return n >= agent.HeaderLen+mad.HeaderLen && uint64(n) <= uint64(len(b))
}

// Close implements Transport.
func (s *service) Close() error {
	if s.ended.Swap(true) {
		return nil
	}
	if s.manager != nil {
		s.manager.Close()
	}
	if s.fd < 0 {
		return nil
	}
	// This wakes whoever waits for a message, or for room for one, and makes them release the socket.
	_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
	s.life.Lock()
	defer s.life.Unlock()
	return os.NewSyscallError("close", unix.Close(s.fd))
}
