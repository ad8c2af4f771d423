package umad

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/agent"
	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// servicePatience is how long the service may take for an answer.
const servicePatience = 10 * time.Second

// openIBOUI is the organisation whose vendor classes the diagnostic tools have.
const openIBOUI = 0x001405

// service is an open port of the service of a fabric. Its agents do what they are told and nothing else: answers are
// matched by whoever uses the transport.
type service struct {
	conn     *net.UnixConn
	manager  *os.File // open as long as the port is one with a subnet manager
	agents   [2]uint32
	out      []byte
	in       [agent.HeaderLen + mad.Len]byte
	close    sync.Once
	closeErr error
}

// dialService opens a port.
func dialService(o ServiceOptions) (Transport, Device, error) {
	if len(o.Node) >= socket.NodeLen || len(o.Adapter) >= socket.NameLen {
		return nil, Device{}, fmt.Errorf("the node is %q and the adapter %q; allowed: up to %d and %d characters", o.Node, o.Adapter, socket.NodeLen-1, socket.NameLen-1)
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
	s := &service{}
	if err := s.open(o, r); err != nil {
		s.Close()
		return nil, d, err
	}
	return s, d, nil
}

// describe asks for what is known of an adapter and its port.
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

var errAnswer = errors.New("the answer is none of its protocol")

// askService asks one question and returns what stands behind the head of the answer.
func askService(path string, r socket.Request) ([]byte, error) {
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

// serviceAnswer reads an answer: its number, and what stands behind that.
func serviceAnswer(c net.Conn) (uint32, []byte, error) {
	if err := c.SetReadDeadline(time.Now().Add(servicePatience)); err != nil {
		return 0, nil, err
	}
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if err != nil {
		return 0, nil, err
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return 0, nil, err
	}
	errno, value, ok := socket.ParseAnswer(b[:n])
	switch {
	case !ok:
		return 0, nil, errAnswer
	case syscall.Errno(errno) == unix.ENODEV:
		return 0, nil, errors.New("there is no such node or adapter")
	case errno != 0:
		return 0, nil, syscall.Errno(errno)
	}
	return value, b[socket.AnswerLen:n], nil
}

// open opens the port with an agent for each of its queue pairs.
func (s *service) open(o ServiceOptions, r socket.Request) (err error) {
	if s.conn, err = net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: o.Socket, Net: "unixpacket"}); err != nil {
		return err
	}
	r.Kind = socket.Open
	if _, err := s.conn.Write(r.Append(nil)); err != nil {
		return err
	}
	if _, _, err := serviceAnswer(s.conn); err != nil {
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

// register registers an agent. The answer comes over a socket of its own, since MADs may come on the port's.
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
	_, _, err = s.conn.WriteMsgUnix(socket.AppendRegistration(nil, r), unix.UnixRights(pair[1]), nil)
	unix.Close(pair[1])
	if err != nil {
		return 0, err
	}
	id, _, err := serviceAnswer(c)
	if err != nil {
		return 0, fmt.Errorf("an agent of class %#02x: %w; another program of the port may be it", r.Class, err)
	}
	return id, nil
}

// listen makes the port take the requests of a class.
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

// Send implements Transport.
func (s *service) Send(d *Datagram) error {
	h := agent.Header{Agent: s.agents[d.LocalQP&1], Length: mad.Len, QPN: d.Remote.QP, LID: d.Remote.LID}
	if d.Remote.QP != SMIQP {
		h.QKey = 0x80010000
	}
	s.out = binary.LittleEndian.AppendUint64(s.out[:0], socket.Send)
	s.out = append(h.Append(s.out), d.MAD[:]...)
	_, err := s.conn.Write(s.out)
	return err
}

// Receive implements Transport.
func (s *service) Receive(d *Datagram) error {
	n, err := s.conn.Read(s.in[:])
	if err != nil {
		return err
	}
	if n < agent.HeaderLen+mad.HeaderLen {
		return errAnswer
	}
	h := agent.ParseHeader(s.in[:])
	clear(d.MAD[copy(d.MAD[:], s.in[agent.HeaderLen:n]):])
	d.Remote, d.Failed, d.Length = Address{LID: h.LID, QP: h.QPN}, h.Status != 0, 0
	d.LocalQP = GSIQP
	if c := d.MAD[1]; c == mad.ClassSubnetDir || c == mad.ClassSubnetLID {
		d.LocalQP = SMIQP
	}
	return nil
}

// Close implements Transport.
func (s *service) Close() error {
	s.close.Do(func() {
		if s.manager != nil {
			s.manager.Close()
		}
		if s.conn != nil {
			s.closeErr = s.conn.Close()
		}
	})
	return s.closeErr
}
