package verbs

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/command"
)

// dmBackend is a backend with device memory.
type dmBackend interface {
	MemoryInfo(ctx context.Context, adapter uint32) (command.MemoryInfo, error)
	AllocDM(ctx context.Context, q command.AllocDM) (command.DeviceMemory, []byte, error)
	FreeDM(ctx context.Context, d command.DeviceMemory) error
}

// DM is device memory: memory that the adapter has, of which it has little (Device.DMSize). Messages go in and out as they
// do with a region of the program's memory; the program itself copies with ReadAt and WriteAt.
type DM struct {
	dev *Device
	mem command.DeviceMemory

	mu      sync.RWMutex
	buf     []byte // nil: freed
	regions atomic.Int32
}

// DMSize returns how much device memory the adapter has for all programs together, in bytes, and how much of it is free.
// ErrUnsupported: the driver has none.
func (d *Device) DMSize() (size, free uint64, err error) {
	b, ok := d.host.backend.(dmBackend)
	if !ok {
		return 0, 0, newError("query device memory", ErrUnsupported, "")
	}
	m, err := b.MemoryInfo(d.host.ctx, d.index)
	return m.Size, m.Free, wrap("query device memory", err)
}

// AllocDM allocates n bytes of device memory, zeroed. ErrInvalid: n is less than 1 or more than the adapter has;
// ErrExhausted: less than n is free.
func (d *Device) AllocDM(n int) (*DM, error) {
	b, ok := d.host.backend.(dmBackend)
	if !ok {
		return nil, newError("allocate device memory", ErrUnsupported, "")
	}
	if n <= 0 {
		return nil, newError("allocate device memory", ErrInvalid, "n is %d, want 1 or more", n)
	}
	m, buf, err := b.AllocDM(d.host.ctx, command.AllocDM{Adapter: d.index, Size: uint64(n)})
	if err != nil {
		return nil, wrap("allocate device memory", err)
	}
	return &DM{dev: d, mem: m, buf: buf[:n:n]}, nil
}

// ReadAt copies len(p) bytes from offset off, all or none of them. It implements io.ReaderAt, except that what is not in
// the device memory is ErrInvalid.
func (m *DM) ReadAt(p []byte, off int64) (int, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.within("read device memory", off, len(p)); err != nil {
		return 0, err
	}
	return copy(p, m.buf[off:]), nil
}

// WriteAt copies p to offset off, all or nothing of it. It implements io.WriterAt; errors are those of ReadAt.
func (m *DM) WriteAt(p []byte, off int64) (int, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.within("write device memory", off, len(p)); err != nil {
		return 0, err
	}
	return copy(m.buf[off:], p), nil
}

func (m *DM) within(what string, off int64, n int) error {
	if m.buf == nil {
		return newError(what, ErrInvalid, "it was freed")
	}
	if off < 0 || n < 0 || off > int64(len(m.buf)) || int64(n) > int64(len(m.buf))-off {
		return newError(what, ErrInvalid, "%d bytes from %d, want them within %d", n, off, len(m.buf))
	}
	return nil
}

// Register makes n bytes from offset off a region of pd. It is ZeroBased: addresses in it begin at 0.
func (m *DM) Register(pd *PD, off int64, n int, access Access) (*MR, error) {
	const what = "register device memory"
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.within(what, off, n); err != nil {
		return nil, err
	}
	switch {
	case n == 0:
		return nil, newError(what, ErrInvalid, "n is 0, want 1 or more")
	case pd.dev != m.dev:
		return nil, newError(what, ErrInvalid, "the PD is of another device")
	case access&OnDemand != 0:
		return nil, newError(what, ErrInvalid, "device memory is not on demand")
	}
	m.regions.Add(1)
	buf := m.buf[off : off+int64(n) : off+int64(n)]
	return pd.registerAt(buf, access|ZeroBased, m.mem.Segment, uint64(off), func() { m.regions.Add(-1) })
}

// Free gives the device memory back. ErrBusy: regions are in it.
func (m *DM) Free() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.buf == nil {
		return nil
	}
	if n := m.regions.Load(); n > 0 {
		return newError("free device memory", ErrBusy, "%d regions are in it", n)
	}
	h := m.dev.host
	if err := h.destroyed("free device memory", h.backend.(dmBackend).FreeDM(h.ctx, m.mem)); err != nil {
		return err
	}
	m.buf = nil
	return nil
}
