package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/lease"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/wait"
)

// neighbour is a session's part in the direct path. It implements lease.Neighbour.
type neighbour struct {
	n        *session
	keys     []byte
	keysFile *file
	words    ring.News // opened by pump

	mu     sync.Mutex
	news   []any // messages for the program, in order: told and dropBody
	gone   bool
	signal chan struct{}
	mapped atomic.Int32 // other programs' segments that the program maps
	copies bool         // the program copies to and from processes itself, and lets others do so with its own

	process atomic.Pointer[proto.ProcessBody] // its process; nil: neighbours leave that to the driver
	moves   uint32                            // how many processes there have been

	// Used only by the goroutine that sends to the program.
	known map[uint32]*passed
	own   bool // its own key table has been passed
}

// passed is what a program has received of a neighbour.
type passed struct {
	keys          bool
	arenas, areas int
	process       uint32
}

// told is an introduction to be sent.
type told struct {
	peer *neighbour
	lease.Introduction
}

var _ lease.Neighbour = (*neighbour)(nil)

// newNeighbour creates the key table of a program.
func newNeighbour(n *session) (*neighbour, error) {
	if err := n.hold(direct.TableSize, "a key table"); err != nil {
		return nil, err
	}
	fd, mem, err := shared.NewReadable("softvpi-keys", direct.TableSize)
	if err != nil {
		return nil, err
	}
	f, err := n.keep(fd, n.server.open.kept, "a key table")
	if err != nil {
		unix.Close(fd)
		_ = unix.Munmap(mem)
		return nil, err
	}
	return &neighbour{
		n: n, keys: mem, keysFile: f, known: map[uint32]*passed{}, signal: make(chan struct{}, 1),
	}, nil
}

// Keys implements lease.Neighbour.
func (b *neighbour) Keys() []byte { return b.keys }

// End implements lease.Neighbour.
func (b *neighbour) End(cause error) { go b.n.end(cause) }

// Whole implements lease.Neighbour.
func (b *neighbour) Whole() bool {
	a := &b.n.arenas
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.whole
}

// Process implements lease.Neighbour.
func (b *neighbour) Process(peer lease.Neighbour) uint32 {
	if p := b.process.Load(); p != nil && peer.(*neighbour).copies {
		return p.Number
	}
	return 0
}

// inhabit records the process that has the program's memory.
func (b *neighbour) inhabit(pid int, address uint64, nonce [16]byte) {
	if !b.copies {
		return
	}
	b.moves++
	b.process.Store(&proto.ProcessBody{Program: b.n.id, Number: b.moves, PID: uint32(pid), Address: address, Nonce: nonce})
}

// errScarce keeps a connection on the driver's path.
var errScarce = errors.New("the driver has no descriptors for the rings of one of the programs")

// Share implements lease.Neighbour.
func (b *neighbour) Share(peer lease.Neighbour, size int) (lease.Place, []byte, error) {
	if !b.Whole() || !peer.(*neighbour).Whole() {
		return lease.Place{}, nil, errScarce
	}
	l := b.n.server.link(b, peer.(*neighbour))
	l.mu.Lock()
	defer l.mu.Unlock()
	k, err := l.blocks.Alloc(size)
	return lease.Place{Area: k.Arena, Offset: k.Offset}, k.Bytes, err
}

// Unshare implements lease.Neighbour.
func (b *neighbour) Unshare(peer lease.Neighbour, at lease.Place) {
	if l := b.n.server.linked(b, peer.(*neighbour)); l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		_ = l.blocks.Free(ring.Block{Arena: at.Area, Offset: at.Offset}) // cannot fail: it was allocated
	}
}

// Introduce implements lease.Neighbour.
func (b *neighbour) Introduce(peer lease.Neighbour, i lease.Introduction) {
	b.tell(told{peer.(*neighbour), i})
}

// maxNews is how many messages may wait for a program. One that takes none for so long does not take part
// in the direct path as it should.
const maxNews = 1 << 15

func (b *neighbour) tell(what any) {
	b.mu.Lock()
	full := len(b.news) >= maxNews
	if !full {
		b.news = append(b.news, what)
	}
	b.mu.Unlock()
	if full {
		b.End(fmt.Errorf("the program has left %d messages about its neighbours unread", maxNews))
		return
	}
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// pump tells the program about its neighbours until the session ends.
func (b *neighbour) pump() {
	var err error
	if b.words, err = ring.OpenNews(b.n.arenas.first()); err != nil {
		b.n.end(err)
		return
	}
	for {
		select {
		case <-b.signal:
		case <-b.n.ctx.Done():
			return
		}
		b.mu.Lock()
		list := b.news
		b.news = nil
		b.mu.Unlock()
		for _, what := range list {
			if err := b.pass(what); err != nil {
				b.n.failed(err)
				return
			}
		}
	}
}

func (b *neighbour) pass(what any) error {
	switch v := what.(type) {
	case told:
		return b.introduce(v)
	case proto.DropBody:
		if v.Segment == 0 {
			delete(b.known, v.Program)
		}
		return b.send(proto.OpDrop, proto.Encode(v))
	}
	return nil
}

// introduce passes what the program lacks of its neighbour, then the introduction.
func (b *neighbour) introduce(t told) error {
	p := t.peer
	if !b.own {
		b.own = true
		if err := b.share(proto.ShareOwnKeys, b.n.id, 0, b.keysFile.fd, uint64(direct.TableSize)); err != nil {
			return err
		}
	}
	k := b.known[p.n.id]
	if k == nil {
		k = new(passed)
		b.known[p.n.id] = k
	}
	files, ok := p.files(b, k)
	if !ok {
		return nil // the neighbour is gone
	}
	defer func() {
		for _, f := range files {
			f.release()
		}
	}()
	for _, f := range files {
		if err := b.share(f.kind, p.n.id, f.number, f.fd, f.size); err != nil {
			return err
		}
	}
	if v := p.process.Load(); v != nil && b.copies && k.process != v.Number {
		k.process = v.Number
		if err := b.send(proto.OpProcess, proto.Encode(*v)); err != nil {
			return err
		}
	}
	return b.send(proto.OpIntroduce, proto.Encode(proto.Introduction{
		QP: command.Handle(t.QP), Number: t.Number, Role: t.Role, Owner: t.Owner,
		Program: p.n.id, Area: t.Record.Area, Offset: t.Record.Offset, Clock: b.n.server.host.Zero(),
	}))
}

func (b *neighbour) share(kind, program, number uint32, fd int, size uint64) error {
	return b.send(proto.OpShare, proto.Encode(proto.ShareBody{Kind: kind, Program: program, Number: number, Size: size}), fd)
}

// maxUntaken is how many frames a program may leave untaken. It may have no thread that reads: more
// would fill the stream, and it would be disconnected for that.
const maxUntaken = 64

// send sends an unsolicited frame once the program has taken the earlier ones.
func (b *neighbour) send(op proto.Opcode, body []byte, fds ...int) error {
	for pause := wait.Ask(wait.Taken); b.words.Waiting() >= maxUntaken; {
		select {
		case <-b.n.ctx.Done():
			return context.Cause(b.n.ctx)
		case <-time.After(pause.Next()):
		}
	}
	err := b.n.out.Stream(op, 0, 0, body, fds...)
	b.words.Tell()
	return err
}

type sharedFile struct {
	*file
	kind, number uint32
	size         uint64
}

// files returns descriptors of what another program, which has k of this one, lacks; the caller releases
// them. false: this one is gone.
func (p *neighbour) files(other *neighbour, k *passed) (list []sharedFile, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return nil, false
	}
	add := func(kind, number uint32, f *file, size uint64) {
		list = append(list, sharedFile{f.hold(), kind, number, size})
	}
	if !k.keys {
		k.keys = true
		add(proto.ShareKeys, 0, p.keysFile, uint64(direct.TableSize))
	}
	a := &p.n.arenas
	a.mu.Lock()
	for ; a.kept(k.arenas) != nil; k.arenas++ {
		n := a.kept(k.arenas)
		add(proto.ShareArena, n.id, n.file, uint64(len(n.mem)))
	}
	a.mu.Unlock()
	l := p.n.server.linked(p, other)
	if l == nil {
		return list, true // the other one is ending
	}
	l.mu.Lock()
	for ; k.areas < len(l.areas); k.areas++ {
		add(proto.ShareArea, uint32(k.areas), l.areas[k.areas].file, uint64(len(l.areas[k.areas].mem)))
	}
	l.mu.Unlock()
	return list, true
}

// mapSegment passes the program a segment of a neighbour.
func (n *session) mapSegment(body []byte) ([]byte, []*file, error) {
	q, err := proto.Decode[proto.MapSegmentArgs](body)
	if err != nil {
		return nil, nil, err
	}
	b := n.direct
	p := n.server.neighbourOf(q.Program)
	if b == nil || p == nil || n.server.linked(b, p) == nil {
		return nil, nil, command.Errorf(command.NotFound, "Program %d is not a neighbour", q.Program)
	}
	if int(b.mapped.Add(1)) > n.server.cfg.MaxSegments {
		b.mapped.Add(-1)
		return nil, nil, command.Errorf(command.Exhausted, "segments of other programs: allowed: %d", n.server.cfg.MaxSegments)
	}
	f, size, err := p.n.segments.lend(q.Segment, b)
	if err != nil {
		b.mapped.Add(-1)
		return nil, nil, err
	}
	return proto.Encode(proto.SegmentReply{Number: q.Segment, Size: size}), []*file{f}, nil
}

// leave ends the part of a program whose objects have been destroyed.
func (b *neighbour) leave() {
	b.mu.Lock()
	b.gone = true
	b.mu.Unlock()
	for _, p := range b.n.server.unlink(b) {
		p.tell(proto.DropBody{Program: b.n.id})
		p.n.segments.unlend(b)
	}
	b.keysFile.release()
	_ = unix.Munmap(b.keys)
}
