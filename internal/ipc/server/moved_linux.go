package server

import (
	"context"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/reach"
	"github.com/softvpi/softvpi/internal/ipc/stream"
)

// senders reads a stream that several processes may write to: a program and the children to which it left
// its attachment. The kernel never mixes bytes of two processes in one read.
type senders struct {
	from stream.Receiver
	last unix.Ucred // writer of what was last read; Pid 0: not visible from here
	oob  [32]byte   // unix.CmsgSpace(unix.SizeofUcred), and no room for descriptors
}

func newSenders(c *net.UnixConn) (*senders, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var set error
	if err := raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) }); err != nil {
		return nil, err
	}
	if set != nil {
		return nil, fmt.Errorf("credentials of the program: %w", set)
	}
	return &senders{from: stream.NewReceiver(c)}, nil
}

// Read implements io.Reader.
func (s *senders) Read(b []byte) (int, error) {
	n, oobn, _, err := s.from.Receive(b, s.oob[:])
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, io.EOF
	}
	s.last = unix.Ucred{}
	if h, data, _, err := unix.ParseOneSocketControlMessage(s.oob[:oobn]); err == nil {
		cred, err := unix.ParseUnixCredentials(&unix.SocketControlMessage{Header: h, Data: data})
		if err == nil {
			s.last = *cred
		}
	}
	return n, nil
}

// moved lets a child of the program take over the attachment after fork. The kernel identifies the
// requester: from.
func (n *session) moved(h proto.Header, body []byte, from unix.Ucred) error {
	q, err := proto.Decode[proto.Moved](body)
	if err != nil {
		return err
	}
	if err := n.moveTo(from, q); err != nil {
		return n.reply(h, proto.EncodeError(err), proto.FlagError)
	}
	n.server.cfg.Log.Info("program moved", "client", n.name, "pid", n.peer.PID, "to", from.Pid)
	return n.reply(h, nil, 0)
}

func (n *session) reply(h proto.Header, body []byte, flags uint16) error {
	if err := n.out.Send(h.Op, proto.FlagResponse|flags, h.ID, body); err != nil {
		return n.unread(err)
	}
	return nil
}

// resting is a client whose connections can be recalled from the direct path.
type resting interface{ Rest(context.Context) error }

func (n *session) moveTo(to unix.Ucred, q proto.Moved) error {
	switch {
	case to.Pid <= 0:
		return command.Errorf(command.Unsupported, "the process that asks is not visible to the driver")
	case int(to.Uid) != n.peer.UID:
		return command.Errorf(command.Access, "the process that asks is of user %d, the program of user %d", to.Uid, n.peer.UID)
	case n.vm == nil: // the child has a copier of its own, on the same memory
		return nil
	}
	child := reach.NewProcessVM(int(to.Pid), &n.server.movers, n.wakeup.wake)
	defer child.Close()
	if err := child.Probe(q.ProbeAddr, q.Nonce); err != nil {
		return command.Errorf(command.Unsupported, "memory of process %d: %v", to.Pid, err)
	}
	if r, ok := n.client.(resting); ok && n.direct != nil {
		// Recall what was lent to the parent; the child starts with what comes later. What is lent meanwhile
		// leaves the memory of both alone.
		n.direct.process.Store(nil)
		if err := r.Rest(n.ctx); err != nil {
			return err
		}
	}
	n.vm.Follow(int(to.Pid))
	if n.direct != nil {
		n.direct.inhabit(int(to.Pid), q.ProbeAddr, q.Nonce)
	}
	return nil
}
