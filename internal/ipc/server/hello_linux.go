package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/device/lease"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/reach"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/ipc/stream"
)

// hello handles the program's first frame and answers it.
func (n *session) hello() error {
	_ = n.conn.SetReadDeadline(time.Now().Add(n.server.cfg.HelloTimeout))
	var buf []byte
	h, body, err := proto.ReadFrame(n.conn, &buf, proto.MaxRequest)
	if err != nil {
		return err
	}
	if h.Op != proto.OpHello || h.Flags != 0 {
		return fmt.Errorf("%w: operation %d before hello", proto.ErrFrame, h.Op)
	}
	q, err := proto.Decode[proto.Hello](body)
	if err != nil {
		return err
	}
	n.passed = sync.OnceFunc(n.server.open.pass(n.ctx))
	w, fds, err := n.prepare(q)
	if err != nil {
		_ = n.out.Send(proto.OpHello, proto.FlagResponse|proto.FlagError, h.ID, proto.EncodeError(err))
		return err
	}
	err = n.out.Send(proto.OpHello, proto.FlagResponse, h.ID, proto.Encode(w), fds...)
	stream.CloseAll(fds)
	if err != nil {
		return err
	}
	_ = n.conn.SetReadDeadline(time.Time{})
	if n.ctx.Err() != nil { // ended meanwhile: keep the deadline
		return context.Cause(n.ctx)
	}
	return nil
}

// prepare creates everything for the answer to the program, which reads its errors.
func (n *session) prepare(q proto.Hello) (*proto.Welcome, []int, error) {
	if err := n.admit(q); err != nil {
		return nil, nil, err
	}
	w, fds, err := n.welcome(q)
	if err != nil {
		return nil, nil, err
	}
	// Before the program is answered: from now on what it sends identifies the sender.
	if n.from, err = newSenders(n.conn); err != nil {
		stream.CloseAll(fds)
		return nil, nil, command.Errorf(command.Exhausted, "%v", err)
	}
	return w, fds, nil
}

// admit checks the program's hello and creates its client.
func (n *session) admit(q proto.Hello) error {
	n.name = proto.NameOf(q.Name)
	switch {
	case q.Magic != proto.Magic:
		return command.Errorf(command.Invalid, "magic %#x: allowed: %#x", q.Magic, proto.Magic)
	case q.Major != proto.Major:
		return command.Errorf(
			command.Unsupported,
			"protocol version %d.%d: the driver speaks %d.%d",
			q.Major,
			q.Minor,
			proto.Major,
			proto.Minor,
		)
	case n.refused != nil:
		return n.refused
	}
	if tell := n.server.cfg.Refused; tell != nil {
		n.account.Tell(func(cause error) {
			n.server.wg.Go(func() { tell(Refusal{n.name, n.peer.PID, cause}) }) // whoever is refused something is counted there
		})
	}
	if err := n.hold(sessionBytes, "a program"); err != nil {
		return err
	}
	var err error
	if n.wakeup, err = newWakeup(); err != nil {
		return err
	}
	if err := n.choosePath(q); err != nil {
		return err
	}
	if err := n.takePart(q); err != nil {
		return err
	}
	var part lease.Neighbour
	if n.direct != nil {
		part = n.direct
	}
	n.arenas.account = n.account
	if n.tenant != nil {
		index, err := n.tenant()
		if err != nil {
			return err
		}
		n.function = &index
	}
	client, err := n.server.host.NewClient(device.ClientConfig{
		Direct: part, Function: n.function, Name: n.name, PID: n.peer.PID, UID: n.peer.UID,
		NewArena: n.arenas.make, FreeArena: n.arenas.free,
		Reach: n.reach, Notify: n.arenas.notify, News: n.tell,
		Account: n.account, WakeFD: n.wakeup.loop, Attached: true, MemoryPath: n.path,
		NoRawPackets: n.peer.UID != 0 && n.peer.UID != os.Geteuid(),
	})
	if err != nil {
		return err
	}
	n.client, n.trackd = client, q.Features&proto.FeatureTracks != 0
	return nil
}

// takePart lets the program take part in the direct path, if it offers to and shares the driver's view of
// processes and users.
func (n *session) takePart(q proto.Hello) (err error) {
	if n.tenant != nil || q.Features&proto.FeatureDirect == 0 || n.path != command.MemoryProcessVM || n.server.cfg.NoDirect {
		return nil
	}
	if n.direct, err = newNeighbour(n); err != nil {
		n.server.cfg.Log.Warn("no direct path for a program", "client", n.name, "pid", n.peer.PID, "cause", err)
		return nil
	}
	n.direct.copies = q.Features&proto.FeatureProcess != 0
	n.direct.inhabit(n.peer.PID, q.ProbeAddr, q.Nonce)
	n.arenas.keep = func(fd int) *file { return n.keepForNeighbours(fd, "an arena of rings") }
	n.segments.keep = func(fd int) *file { return n.keepForNeighbours(fd, "a segment") }
	return nil
}

// choosePath finds out how to access the program's memory.
func (n *session) choosePath(q proto.Hello) error {
	want := n.server.cfg.Path
	if q.Path != 0 {
		if want != 0 && want != q.Path {
			return command.Errorf(command.Unsupported, "memory path %s: the driver is set to %s", q.Path.String(), want.String())
		}
		want = q.Path
	}
	if want != 0 && want != command.MemoryProcessVM && want != command.MemoryCopier {
		return command.Errorf(command.Invalid, "memory path %d: allowed: 0, %d, %d", want, command.MemoryProcessVM, command.MemoryCopier)
	}
	if want != command.MemoryCopier {
		vm := reach.NewProcessVM(n.peer.PID, &n.server.movers, n.wakeup.wake)
		err := errors.New("the program's process is not visible here")
		if n.peer.PID > 0 {
			err = vm.Probe(q.ProbeAddr, q.Nonce)
		}
		if err == nil {
			n.vm, n.path = vm, command.MemoryProcessVM
			return nil
		}
		vm.Close()
		if want == command.MemoryProcessVM {
			return command.Errorf(command.Unsupported, "memory path process_vm: %v", err)
		}
		n.server.cfg.Log.Debug("process_vm is refused", "client", n.name, "pid", n.peer.PID, "cause", err)
	}
	if q.Features&proto.FeatureCopier == 0 {
		return command.Errorf(command.Unsupported, "the driver cannot reach the program's memory, and the program has no copier")
	}
	n.path = command.MemoryCopier
	return nil
}

// welcome builds the answer to hello, with the wake descriptor and, if there is one, the copier's memory.
func (n *session) welcome(q proto.Hello) (*proto.Welcome, []int, error) {
	cfg := &n.server.cfg
	w := &proto.Welcome{
		Magic: proto.Magic, Major: proto.Major, Minor: proto.Minor,
		Features: proto.FeatureSegments | proto.FeatureProcessVM | proto.FeatureCopier,
		Driver:   proto.FixedName(cfg.Driver), PID: uint32(unix.Getpid()), Path: n.path,
		Doorbells: uint32(n.server.host.Doorbells()), Credits: proto.EventCredits, MaxRequests: proto.MaxInFlight,
		MaxSegments: uint32(cfg.MaxSegments), SegmentBytes: cfg.Memory.Program,
	}
	if n.direct != nil {
		w.Features |= proto.FeatureDirect | q.Features&proto.FeatureProcess
	}
	fds := []int{n.wakeup.pass()}
	if n.path == command.MemoryCopier {
		if err := n.hold(reach.CopierSize, "the memory of a copier"); err != nil {
			return nil, nil, err
		}
		fd, mem, err := shared.New("softvpi-copier", reach.CopierSize)
		if err != nil {
			stream.CloseAll(fds)
			return nil, nil, command.Errorf(command.Exhausted, "copier: %v", err)
		}
		n.copier = reach.NewCopier(mem)
		w.CopierBytes = reach.CopierSize
		fds = append(fds, fd)
	}
	if n.trackd {
		w.Features |= proto.FeatureTracks
	}
	n.credits.grant(proto.EventCredits)
	return w, fds, nil
}
