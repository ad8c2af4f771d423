package ipc

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/ipc/shared"
	"golang.org/x/sys/unix"
)

// Offsets of words in the header of a CQ's ring.
const (
	ringSequence = 132
	ringHeader   = 256
)

// arenas are the ring memory of one client.
type arenas struct {
	mu   sync.Mutex
	list map[uint32]*sharedArena
	news []*sharedArena // not yet passed to the client
	snap atomic.Pointer[[][]byte]
	keep bool // keep the descriptors, for neighbours
}

type sharedArena struct {
	id   uint32
	fd   int // -1 once passed
	mem  []byte
	keep bool // keep the descriptor, for neighbours
}

func (a *sharedArena) sent() {
	if a.keep {
		return
	}
	unix.Close(a.fd)
	a.fd = -1
}

// make implements device.ClientConfig.NewArena.
func (a *arenas) make(id uint32, size int) ([]byte, error) {
	const page = 4096
	fd, mem, err := shared.New("softvpi-rings", (size+page-1)&^(page-1))
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	n := &sharedArena{id, fd, mem, a.keep}
	a.list[id] = n
	a.news = append(a.news, n)
	a.publish()
	return mem[:size:size], nil
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
	if n.fd >= 0 {
		unix.Close(n.fd)
		n.fd = -1
	}
	_ = unix.Munmap(n.mem)
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
	if uint64(arena) >= uint64(len(t)) || uint64(len(t[arena])) < ringHeader || offset > uint64(len(t[arena])-ringHeader) {
		return
	}
	shared.Wake((*uint32)(unsafe.Pointer(&t[arena][offset+ringSequence])))
}
