package server

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/ring"
)

// arenas are the ring memory of one client.
type arenas struct {
	mu      sync.Mutex
	list    map[uint32]*sharedArena
	news    []*sharedArena // not yet passed to the client
	account *budget.Account
	snap    atomic.Pointer[[][]byte]
	// keep makes a file of a descriptor that is kept for neighbours; nil, or nil as its result: it is closed
	// once it was passed to the program.
	keep  func(fd int) *file
	whole bool // the descriptors of all arenas are kept
}

type sharedArena struct {
	id   uint32
	file *file // nil once passed
	mem  []byte
	kept bool // the descriptor is kept for neighbours
}

func (a *sharedArena) sent() {
	if a.kept {
		return
	}
	a.file.release()
	a.file = nil
}

// make implements device.ClientConfig.NewArena.
func (a *arenas) make(id uint32, size int) ([]byte, error) {
	const page = 4096
	n := (size + page - 1) &^ (page - 1)
	if err := a.account.Take(budget.Memory, uint64(n), "an arena of rings"); err != nil {
		return nil, err
	}
	fd, mem, err := shared.New("softvpi-rings", n)
	if err != nil {
		a.account.Give(budget.Memory, uint64(n))
		return nil, err
	}
	a.add(id, fd, mem)
	return mem[:size:size], nil
}

// add adds an arena to those of the client.
func (a *arenas) add(id uint32, fd int, mem []byte) {
	n := &sharedArena{id: id, mem: mem}
	if a.keep != nil {
		n.file = a.keep(fd)
	}
	if n.kept = n.file != nil; !n.kept {
		n.file = newFile(fd, nil)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.whole = n.kept && (a.whole || len(a.list) == 0)
	a.list[id] = n
	a.news = append(a.news, n)
	a.publish()
}

// free implements device.ClientConfig.FreeArena.
func (a *arenas) free(id uint32, _ []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.list[id]; n != nil {
		a.drop(n)
		a.publish()
	}
}

func (a *arenas) drop(n *sharedArena) {
	delete(a.list, n.id)
	n.file.release()
	n.file = nil
	_ = unix.Munmap(n.mem)
	a.account.Give(budget.Memory, uint64(len(n.mem)))
}

// kept returns the arena with this number if its descriptor was kept, otherwise nil. The caller holds mu.
func (a *arenas) kept(id int) *sharedArena {
	if n := a.list[uint32(id)]; n != nil && n.kept {
		return n
	}
	return nil
}

func (a *arenas) closeAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.list {
		a.drop(n)
	}
	a.news = nil
	a.publish()
}

// first returns the memory of arena 0, which contains the doorbell queue.
func (a *arenas) first() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.list[0]; n != nil {
		return n.mem
	}
	return nil
}

// unsent returns the arenas yet to be passed to the client.
func (a *arenas) unsent() []*sharedArena {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.news
	a.news = nil
	return n
}

// publish updates the table that notify reads without a lock.
func (a *arenas) publish() {
	var most uint32
	for id := range a.list {
		most = max(most, id+1)
	}
	t := make([][]byte, most)
	for id, n := range a.list {
		t[id] = n.mem
	}
	a.snap.Store(&t)
}

// notify implements device.ClientConfig.Notify: it wakes the waiters of the CQ whose ring is at this
// offset.
func (a *arenas) notify(arena uint32, offset uint64) {
	t := *a.snap.Load()
	if uint64(arena) >= uint64(len(t)) || uint64(len(t[arena])) < ring.HeaderSize || offset > uint64(len(t[arena])-ring.HeaderSize) {
		return
	}
	shared.Wake((*uint32)(unsafe.Pointer(&t[arena][offset+ring.SequenceAt])))
}
