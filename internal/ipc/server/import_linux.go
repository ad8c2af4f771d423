package server

import (
	"context"
	"crypto/rand"
	"crypto/subtle"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/shared"
)

// sharer is a session whose objects other programs may import.
type sharer interface {
	Self() *device.Client
	ImportPD(ctx context.Context, from *device.Client, h command.Handle) (command.Handle, error)
	ImportMemory(ctx context.Context, from *device.Client, region, pd command.Handle) (command.Memory, error)
	ImportDM(ctx context.Context, from *device.Client, h command.Handle,
		place func(segment uint32) (own uint32, release func(), err error)) (command.DeviceMemory, error)
}

// importer is a session that imports objects of other programs of its host by itself.
type importer interface {
	ImportFrom(ctx context.Context, from Session, q proto.ImportArgs,
		place func(segment uint32) (own uint32, release func(), err error)) (proto.Imported, error)
}

// token is what a program passes to those that may import its objects. Nobody else knows it.
type token [16]byte

// export tells the program its token.
func (n *session) export(body []byte) ([]byte, error) {
	if _, err := proto.Decode[proto.Empty](body); err != nil {
		return nil, err
	}
	n.server.mu.Lock()
	defer n.server.mu.Unlock()
	if n.token == (token{}) {
		_, _ = rand.Read(n.token[:]) // never fails
	}
	return proto.Encode(proto.Exported{Token: n.token}), nil
}

// exporter returns the session that has a token.
func (s *Server) exporter(t token) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.sessions {
		if n.token != (token{}) && subtle.ConstantTimeCompare(n.token[:], t[:]) == 1 {
			return n
		}
	}
	return nil
}

// importObject gives the program an object of another one's.
func (n *session) importObject(ctx context.Context, body []byte) ([]byte, []*file, error) {
	q, err := proto.Decode[proto.ImportArgs](body)
	if err != nil {
		return nil, nil, err
	}
	from := n.server.exporter(q.Token)
	if from == nil || !n.beside(from) {
		return nil, nil, command.Errorf(command.NotFound, "no program that is attached has this token")
	}
	var out []*file
	place := func(id uint32) (uint32, func(), error) {
		f, size, err := from.segments.open(id)
		if err != nil {
			return 0, nil, err
		}
		out = append(out, f)
		number, err := n.segments.adopt(f, size)
		return number, func() { _ = n.segments.free(number) }, err
	}
	r, err := n.imported(ctx, from, q, place)
	if err != nil {
		releaseAll(out)
		return nil, nil, err
	}
	return proto.Encode(r), out, nil
}

// beside reports whether a program sees the same functions as another: objects of a virtual function stay with those who have that.
func (n *session) beside(from *session) bool {
	if n.function == nil || from.function == nil {
		return n.function == from.function
	}
	return *n.function == *from.function
}

// imported gives the program an object of another one's. place passes device memory on.
func (n *session) imported(ctx context.Context, from *session, q proto.ImportArgs,
	place func(id uint32) (uint32, func(), error)) (r proto.Imported, err error) {
	if i, ok := n.client.(importer); ok {
		return i.ImportFrom(ctx, from.client, q, place)
	}
	own, ok := n.client.(sharer)
	theirs, both := from.client.(sharer)
	if !ok || !both {
		return r, command.Errorf(command.Unsupported, "not by this driver")
	}
	switch q.Kind {
	case 0: // whether there is such a program
	case command.KindPD:
		r.Handle, err = own.ImportPD(ctx, theirs.Self(), q.Handle)
	case command.KindMemory:
		var m command.Memory
		m, err = own.ImportMemory(ctx, theirs.Self(), q.Handle, q.PD)
		r.LKey, r.RKey = m.LKey, m.RKey
	case command.KindDM:
		var d command.DeviceMemory
		d, err = own.ImportDM(ctx, theirs.Self(), q.Handle, place)
		r.Handle, r.Segment, r.Size = d.Handle, d.Segment, d.Size
	default:
		err = command.Errorf(command.Invalid, "Kind is %d, want 0, %d, %d or %d", q.Kind, command.KindPD, command.KindMemory, command.KindDM)
	}
	return r, err
}

// open returns the file of a segment, which the caller releases, and its size.
func (s *segments) open(id uint32) (*file, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.list[id]
	if g == nil || g.mem == nil || g.freed {
		return nil, 0, command.Errorf(command.NotFound, "Segment %d", id)
	}
	if g.file == nil {
		return nil, 0, command.Errorf(command.Exhausted, "Segment %d is not for other programs: no descriptor was left for it", id)
	}
	return g.file.hold(), uint64(len(g.mem)), nil
}

// adopt maps another program's segment as one of this program's, which pays for it too.
func (s *segments) adopt(f *file, size uint64) (id uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) >= s.maxCount {
		return 0, command.Errorf(command.Exhausted, "shared segments of this program: allowed: %d", s.maxCount)
	}
	if err := s.charge(size); err != nil {
		return 0, err
	}
	mem, err := shared.Map(f.fd, size)
	if err != nil {
		s.account.Give(budget.Memory, size)
		return 0, command.Errorf(command.Exhausted, "shared segment of %d bytes: %v", size, err)
	}
	s.last++
	for s.last == 0 || s.list[s.last] != nil {
		s.last++
	}
	s.list[s.last] = &segment{mem: mem, file: f.hold()}
	return s.last, nil
}
