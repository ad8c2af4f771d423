package client

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/reach"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/os/monotonic"
	"github.com/softvpi/softvpi/internal/wait"
)

// introduced is what a program knows about its neighbours: the programs with which it shares the direct
// path.
type introduced struct {
	mu       sync.Mutex
	own      direct.Table
	ownMem   []byte
	programs map[uint32]*program
	slots    map[command.Handle]*slot
	stopped  bool
}

type slot struct {
	direct.Slot
	number uint32
	record *direct.Record
}

// program is a neighbour.
type program struct {
	client   *Client
	id       uint32
	keys     []byte
	table    direct.Table
	areas    [][]byte
	arenas   atomic.Pointer[[][]byte]
	segments atomic.Pointer[map[uint32][]byte]
	process  atomic.Pointer[process] // its memory outside of segments; nil: the driver has not told of it

	// Under introduced.mu: segments that were requested; the value says that the driver refused.
	asked map[uint32]bool
	gone  bool
}

// process is a process that a neighbour told of.
type process struct {
	number uint32
	memory *reach.Neighbour // nil: this program cannot reach it
}

// segmentTime limits how long a program waits for a segment of a neighbour.
const segmentTime = 10 * time.Second

// Direct returns where the QP finds its initiator once there is one.
func (c *Client) Direct(qp command.Handle, number uint32) *direct.Slot {
	c.introduced.mu.Lock()
	defer c.introduced.mu.Unlock()
	return &c.introduced.slot(qp, number).Slot
}

func (d *introduced) slot(qp command.Handle, number uint32) *slot {
	s := d.slots[qp]
	if s == nil || s.number != number {
		s = &slot{number: number}
		if d.slots == nil {
			d.slots = map[command.Handle]*slot{}
		}
		d.slots[qp] = s
	}
	return s
}

// forget removes the slot of a QP that was destroyed.
func (d *introduced) forget(qp command.Handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.slots, qp)
}

// shared maps memory that the driver passed.
func (c *Client) shared(h proto.Header, body []byte) error {
	b, err := proto.Decode[proto.ShareBody](body)
	if err != nil {
		return err
	}
	fd, err := c.descriptor(h, "shared memory")
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	d := &c.introduced
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.program(c, b.Program)
	switch b.Kind {
	case proto.ShareOwnKeys:
		d.ownMem, d.own, err = mapKeys(fd, b.Size)
	case proto.ShareKeys:
		p.keys, p.table, err = mapKeys(fd, b.Size)
	case proto.ShareArena:
		err = p.addArena(fd, b)
	case proto.ShareArea:
		if int(b.Number) != len(p.areas) {
			return fmt.Errorf("%w: area %d of records after %d", proto.ErrFrame, b.Number, len(p.areas))
		}
		var mem []byte
		if mem, err = shared.Map(fd, b.Size); err == nil {
			p.areas = append(p.areas, mem)
		}
	}
	return err
}

func mapKeys(fd int, size uint64) ([]byte, direct.Table, error) {
	if size != uint64(direct.TableSize) {
		return nil, direct.Table{}, fmt.Errorf("%w: key table of %d bytes, want %d", proto.ErrFrame, size, direct.TableSize)
	}
	mem, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, direct.Table{}, fmt.Errorf("mmap: %w", err)
	}
	t, err := direct.OpenTable(mem)
	return mem, t, err
}

func (d *introduced) program(c *Client, id uint32) *program {
	p := d.programs[id]
	if p == nil {
		p = &program{client: c, id: id, asked: map[uint32]bool{}}
		p.arenas.Store(&[][]byte{})
		p.segments.Store(&map[uint32][]byte{})
		if d.programs == nil {
			d.programs = map[uint32]*program{}
		}
		d.programs[id] = p
	}
	return p
}

func (p *program) addArena(fd int, b proto.ShareBody) error {
	old := *p.arenas.Load()
	if int(b.Number) != len(old) {
		return fmt.Errorf("%w: arena %d of program %d after %d", proto.ErrFrame, b.Number, p.id, len(old))
	}
	mem, err := shared.Map(fd, b.Size)
	if err != nil {
		return err
	}
	list := append(old[:len(old):len(old)], mem)
	p.arenas.Store(&list)
	return nil
}

// introduce creates the initiator of a QP.
func (c *Client) introduce(body []byte) error {
	b, err := proto.Decode[proto.Introduction](body)
	if err != nil {
		return err
	}
	d := &c.introduced
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.programs[b.Program]
	if p == nil || p.keys == nil || d.ownMem == nil || uint64(b.Area) >= uint64(len(p.areas)) || b.Role > 1 {
		return fmt.Errorf("%w: introduction of QP %d to program %d", proto.ErrFrame, b.Number, b.Program)
	}
	mem := p.areas[b.Area]
	if b.Offset > uint64(len(mem)) || b.Offset%64 != 0 {
		return fmt.Errorf("%w: record at %d of %d bytes", proto.ErrFrame, b.Offset, len(mem))
	}
	r, err := direct.OpenRecord(mem[b.Offset:])
	if err != nil {
		return fmt.Errorf("%w: %v", proto.ErrFrame, err)
	}
	s := d.slot(b.QP, b.Number)
	if d.stopped || s.record == r && s.Load() != nil {
		return nil // it only announced more of the neighbour
	}
	s.record = r
	watch := monotonic.NewWatch()
	s.Store(direct.NewInitiator(r, int(b.Role), direct.Surroundings{
		Own: d.own, Peer: p.table, Owner: b.Owner, OwnArena: c.Arena, PeerArena: p.arena, Segment: p.segment,
		Process: p.inhabited, Wake: shared.Wake,
		Ring: func() { c.Doorbell(b.QP) },
		Now:  func() uint64 { return watch.Now() - b.Clock }, Stamps: c.about.Minor < timesMinor,
	}))
	return nil
}

// process takes notice of the process that has a neighbour's memory. If this program may not access it, the
// driver copies to and from it.
func (c *Client) process(body []byte) error {
	b, err := proto.Decode[proto.ProcessBody](body)
	if err != nil {
		return err
	}
	d := &c.introduced
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.programs[b.Program]; p != nil {
		m, _ := reach.NewNeighbour(int(b.PID), b.Address, b.Nonce)
		p.process.Store(&process{number: b.Number, memory: m})
	}
	return nil
}

// inhabited returns access to the neighbour's process with this number.
func (p *program) inhabited(number uint32) (memory direct.Process, coming bool) {
	switch v := p.process.Load(); {
	case v == nil || v.number != number:
		return nil, true
	case v.memory == nil:
		return nil, false
	default:
		return v.memory, false
	}
}

// mapFirst is how many bytes of a neighbour's segment are populated before it is used: some 10 ms, less than the page
// faults would take.
const mapFirst = 64 << 20

// stop ends all direct paths: no operation is in progress when it returns.
func (d *introduced) stop() {
	d.mu.Lock()
	d.stopped = true
	var list []*direct.Initiator
	for _, s := range d.slots {
		if i := s.Load(); i != nil {
			list = append(list, i)
		}
	}
	d.mu.Unlock()
	for _, i := range list {
		i.Stop()
	}
}

// recallTime is how long a peer may stay in an operation, as the driver has it.
const recallTime = 5 * time.Second

// recall ends the use of the direct path when there is no driver any more to do so: when it returns, no peer is
// in an operation that may use this program's memory, nor will begin one.
func (d *introduced) recall() {
	d.mu.Lock()
	var list []*direct.Record
	for _, s := range d.slots {
		if s.record != nil {
			list = append(list, s.record)
		}
	}
	d.mu.Unlock()
	began := time.Now()
	for _, r := range list {
		r.Way[0].Recall()
		r.Way[1].Recall()
		for r.Busy() && time.Since(began) < recallTime {
			wait.Do(wait.YieldAll)
		}
	}
}

// close replaces the mapped memory of the neighbours with zeros.
func (d *introduced) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.programs {
		p.gone = true
		for _, mem := range append(append([][]byte{p.keys}, p.areas...), *p.arenas.Load()...) {
			retireAny(mem)
		}
		for _, mem := range *p.segments.Load() {
			retireAny(mem)
		}
	}
	d.programs = nil
	retireAny(d.ownMem)
}

func retireAny(mem []byte) {
	if len(mem) > 0 {
		shared.Retire(mem)
	}
}
