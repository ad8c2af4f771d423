package verbs

import (
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/command"
)

// WindowType is the type of a memory window (IBA 10.6.7.2).
type WindowType uint32

// The types.
const (
	WindowType1 WindowType = 1 // bound through any QP of the domain; the adapter chooses the key
	WindowType2 WindowType = 2 // bound through one QP and usable over it; the program chooses the key
)

// MW is a memory window.
type MW struct {
	pd     *PD
	typ    WindowType
	handle command.Handle
	rkey   atomic.Uint32
}

// AllocWindow allocates a memory window. Post an OpBind to bind it.
func (pd *PD) AllocWindow(t WindowType) (*MW, error) {
	if t != WindowType1 && t != WindowType2 {
		return nil, newError("allocate window", ErrInvalid, "type is %d, want 1 or 2", t)
	}
	h := pd.dev.host
	m, err := h.backend.AllocWindow(h.ctx, pd.handle, uint32(t))
	if err != nil {
		return nil, wrap("allocate window", err)
	}
	mw := &MW{pd: pd, typ: t, handle: m.Handle}
	mw.rkey.Store(m.RKey)
	return mw, nil
}

// Type returns the type of the window.
func (mw *MW) Type() WindowType { return mw.typ }

// RKey returns the window's key: that of the last bind posted, or else the initial one.
func (mw *MW) RKey() uint32 { return mw.rkey.Load() }

// Close frees the window.
func (mw *MW) Close() error {
	h := mw.pd.dev.host
	return h.destroyed("free window", h.backend.Destroy(h.ctx, command.KindWindow, mw.handle))
}
