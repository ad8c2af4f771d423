package nd

import (
	"context"
	"sync"

	"github.com/softvpi/softvpi/verbs"
)

// MemoryRegion is registered memory. It is created empty; Register or Allocate gives it memory.
type MemoryRegion struct {
	overlapped
	adapter *Adapter

	state sync.Mutex
	mr    *verbs.MR
}

// CreateMemoryRegion creates a region without memory.
func (a *Adapter) CreateMemoryRegion() (*MemoryRegion, error) {
	return &MemoryRegion{adapter: a}, nil
}

// Register registers buffer, which stays reachable and in place until Deregister. ND_INVALID_PARAMETER:
// buffer is nil or longer than MaxRegistrationSize, or flags has unknown bits. ND_INVALID_BUFFER_SIZE:
// buffer is empty. ND_INVALID_DEVICE_STATE: the region already has memory.
func (m *MemoryRegion) Register(ctx context.Context, buffer []byte, flags MRFlags) error {
	const op = "MemoryRegion.Register"
	switch {
	case buffer == nil:
		return refuse(StatusInvalidParameter, op, "buffer is nil")
	case len(buffer) == 0:
		return refuse(StatusInvalidBufferSize, op, "buffer is empty")
	case uint64(len(buffer)) > m.adapter.dev.Limits().MaxRegion:
		return refuse(StatusInvalidParameter, op, "buffer has %d bytes, MaxRegistrationSize is %d", len(buffer),
			m.adapter.dev.Limits().MaxRegion)
	}
	return m.register(ctx, op, flags, func(a verbs.Access) (*verbs.MR, error) { return m.adapter.pd.Register(buffer, a) })
}

// Allocate registers size bytes of new, zeroed memory; when attached to a driver it is shared with it. See
// Buffer. Deregister frees it.
func (m *MemoryRegion) Allocate(ctx context.Context, size int, flags MRFlags) error {
	const op = "MemoryRegion.Allocate"
	if size <= 0 {
		return refuse(StatusInvalidBufferSize, op, "size is %d, want 1 or more", size)
	}
	return m.register(ctx, op, flags, func(a verbs.Access) (*verbs.MR, error) { return m.adapter.pd.Allocate(size, a) })
}

func (m *MemoryRegion) register(ctx context.Context, op string, flags MRFlags, make func(verbs.Access) (*verbs.MR, error)) error {
	if flags&^allMRFlags != 0 {
		return refuse(StatusInvalidParameter, op, "flags has unknown bits %#x", uint32(flags&^allMRFlags))
	}
	if err := ctx.Err(); err != nil {
		return fail(op, canceled(err))
	}
	m.state.Lock()
	defer m.state.Unlock()
	if m.mr != nil {
		return refuse(StatusInvalidDeviceState, op, "the region has memory already")
	}
	mr, err := make(flags.access())
	if err != nil {
		return fail(op, err)
	}
	m.mr = mr
	return nil
}

// Deregister takes the memory back: once it has returned nil, no packet uses it any more. ND_DEVICE_BUSY:
// a memory window is bound to it.
func (m *MemoryRegion) Deregister(ctx context.Context) error {
	const op = "MemoryRegion.Deregister"
	if err := ctx.Err(); err != nil {
		return fail(op, canceled(err))
	}
	m.state.Lock()
	defer m.state.Unlock()
	if m.mr == nil {
		return refuse(StatusInvalidDeviceState, op, "the region has no memory")
	}
	if err := m.mr.Deregister(); err != nil {
		return fail(op, err)
	}
	m.mr = nil
	return nil
}

func (m *MemoryRegion) region() *verbs.MR {
	if m == nil {
		return nil
	}
	m.state.Lock()
	defer m.state.Unlock()
	return m.mr
}

// GetLocalToken returns the token for this side's SGEs; 0 without memory.
func (m *MemoryRegion) GetLocalToken() uint32 {
	if mr := m.region(); mr != nil {
		return mr.LKey()
	}
	return 0
}

// GetRemoteToken returns the token with which peers may access the region as its flags allow; 0 without
// memory.
func (m *MemoryRegion) GetRemoteToken() uint32 {
	if mr := m.region(); mr != nil {
		return mr.RKey()
	}
	return 0
}

// Address returns the address of the first byte for a peer's Read and Write; 0 without memory.
func (m *MemoryRegion) Address() uint64 {
	if mr := m.region(); mr != nil {
		return mr.Addr()
	}
	return 0
}

// Buffer returns the registered memory; nil if there is none.
func (m *MemoryRegion) Buffer() []byte {
	if mr := m.region(); mr != nil {
		return mr.Bytes()
	}
	return nil
}

// SGE returns the scatter/gather entry for length bytes from offset, clipped to the region.
func (m *MemoryRegion) SGE(offset, length int) SGE {
	mr := m.region()
	if mr == nil {
		return SGE{}
	}
	b := mr.Bytes()
	offset = min(max(offset, 0), len(b))
	length = min(max(length, 0), len(b)-offset)
	return SGE{Buffer: b[offset : offset+length], MemoryRegionToken: mr.LKey()}
}

// Close deregisters the memory, if there is any.
func (m *MemoryRegion) Close() error {
	m.state.Lock()
	defer m.state.Unlock()
	if m.mr == nil {
		return nil
	}
	if err := m.mr.Deregister(); err != nil {
		return fail("MemoryRegion.Close", err)
	}
	m.mr = nil
	return nil
}

// MemoryWindow gives a peer access to a part of a region until it is invalidated. QueuePair.Bind binds it.
type MemoryWindow struct {
	adapter *Adapter
	mw      *verbs.MW
}

// CreateMemoryWindow creates an unbound window.
func (a *Adapter) CreateMemoryWindow() (*MemoryWindow, error) {
	mw, err := a.pd.AllocWindow(verbs.WindowType2)
	if err != nil {
		return nil, fail("Adapter.CreateMemoryWindow", err)
	}
	return &MemoryWindow{adapter: a, mw: mw}, nil
}

// GetRemoteToken returns the token for the peer. It is valid once QueuePair.Bind has returned.
func (w *MemoryWindow) GetRemoteToken() uint32 { return w.mw.RKey() }

// Close releases the window, bound or not.
func (w *MemoryWindow) Close() error { return fail("MemoryWindow.Close", w.mw.Close()) }
