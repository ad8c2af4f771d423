package device

import (
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/lease"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/memory"
)

// fakeNeighbour is a program in this process that takes part in the direct path.
type fakeNeighbour struct {
	keys  []byte
	p     *program
	data  []byte // its segment 1
	ended chan error

	mu        sync.Mutex
	areas     map[*fakeNeighbour][][]byte // shared with each peer; both ends have the same
	initiator *direct.Initiator
	record    *direct.Record
	role      int
	owner     uint32
	unshared  atomic.Int32
}

func (f *fakeNeighbour) Keys() []byte { return f.keys }

func (f *fakeNeighbour) Share(peer lease.Neighbour, size int) (lease.Place, []byte, error) {
	mem, _ := privateArena(0, size)
	o := peer.(*fakeNeighbour)
	f.areas[o] = append(f.areas[o], mem)
	o.areas[f] = f.areas[o]
	return lease.Place{Area: uint32(len(f.areas[o]) - 1)}, mem, nil
}

func (f *fakeNeighbour) Whole() bool { return true }

func (f *fakeNeighbour) Process(lease.Neighbour) uint32 { return 0 }

func (f *fakeNeighbour) Unshare(lease.Neighbour, lease.Place) { f.unshared.Add(1) }

func (f *fakeNeighbour) Introduce(peer lease.Neighbour, i lease.Introduction) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := peer.(*fakeNeighbour)
	f.record, _ = direct.OpenRecord(f.areas[o][i.Record.Area])
	f.role, f.owner = int(i.Role), i.Owner
	own, _ := direct.OpenTable(f.keys)
	theirs, _ := direct.OpenTable(o.keys)
	f.initiator = direct.NewInitiator(f.record, f.role, direct.Surroundings{
		Own: own, Peer: theirs, Owner: i.Owner,
		OwnArena:  func(id uint32) []byte { return f.p.c.Arena(id) },
		PeerArena: func(id uint32) []byte { return o.p.c.Arena(id) },
		Segment:   func(uint32) ([]byte, bool) { return o.data, false },
		Wake:      func(*uint32) {},
		Ring:      func() { f.p.c.Doorbell(command.Handle(i.QP)) },
		Now:       func() uint64 { return 1 },
	})
}

func (f *fakeNeighbour) End(cause error) { f.ended <- cause }

func (f *fakeNeighbour) get() *direct.Initiator {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.initiator
}

// way returns the direction of the connection that the program initiates.
func (f *fakeNeighbour) way() *direct.Direction {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &f.record.Way[f.role]
}

func neighbourTo(t testing.TB, h *Host, adapter uint32) *fakeNeighbour {
	f := &fakeNeighbour{ended: make(chan error, 1), areas: map[*fakeNeighbour][][]byte{}}
	f.keys, _ = privateArena(0, direct.TableSize)
	f.data, _ = privateArena(0, 1<<16)
	f.p = newProgramWith(t, h, adapter, ClientConfig{
		Name: t.Name(), Attached: true, Direct: f,
		Reach: func(r command.RegisterMemory) (Reached, error) {
			r.Segment = 0
			return ownMemory(r)
		},
	})
	return f
}

func (f *fakeNeighbour) region() (command.Memory, uint64) {
	base := uint64(uintptr(unsafe.Pointer(&f.data[0])))
	m, err := f.p.c.RegisterMemory(bg, command.RegisterMemory{
		PD: f.p.pd, Base: base, Length: uint64(len(f.data)), Segment: 1,
		Access: uint32(memory.LocalWrite | memory.RemoteWrite | memory.RemoteRead | memory.RemoteAtomic),
	})
	f.p.check(err)
	return m, base
}
