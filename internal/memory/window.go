package memory

// Window is a memory window (IBA 10.6.7). Type 1 belongs to a PD and may be rebound at any time; type 2
// (2B), when bound, also belongs to a QP and must be invalidated before it is rebound.
type Window struct {
	PD   PD
	Type uint8 // 1 or 2

	key    uint32
	region *Region // nil while unbound
	addr   uint64  // first byte, in the region's addresses
	length uint64
	access Access
	qpn    uint32
}

// Key returns the window's current rkey.
func (w *Window) Key() uint32 { return w.key }

// NextKey returns the rkey that follows key: the same index, the next tag. A
// type 1 window has it after its next bind.
func NextKey(key uint32) uint32 { return key&^0xff | (key+1)&0xff }

// AllocWindow allocates an unbound window. Errors are ErrFull and *AttributeError.
func (t *Table) AllocWindow(pd PD, typ uint8) (*Window, error) {
	if typ != 1 && typ != 2 {
		return nil, &AttributeError{"type", uint64(typ), "1 or 2"}
	}
	key, err := t.take()
	if err != nil {
		return nil, err
	}
	w := &Window{PD: pd, Type: typ, key: key}
	t.entries[key>>8].window = w
	return w, nil
}

// FreeWindow frees a window, bound or not. The key may have an earlier tag of the window. ErrKey: there is
// none.
func (t *Table) FreeWindow(key uint32) error {
	w := t.window(key)
	if w == nil {
		return ErrKey
	}
	t.unbind(w)
	t.give(w.key)
	return nil
}

// window returns the window with this key index, whatever its tag; nil where
// there is none.
func (t *Table) window(key uint32) *Window {
	i := key >> 8
	if uint64(i) >= uint64(len(t.entries)) {
		return nil
	}
	return t.entries[i].window
}

// Bind is a bind work request (IBA 10.6.7.2).
type Bind struct {
	PD  PD     // of the QP that the request was posted to
	QPN uint32 // of that QP
	// Key identifies the window. For type 1 it is the current rkey, and the new one is its NextKey. For
	// type 2 it is the new rkey: the window's index with a tag that the consumer chose, different from the
	// current one.
	Key    uint32
	LKey   uint32 // the region; it must have WindowBind
	Addr   uint64 // first byte, in the region's addresses
	Length uint64 // type 1: 0 unbinds
	// Access is a subset of RemoteRead, RemoteWrite, RemoteAtomic and, for type 2, ZeroBased. Writes and
	// atomics need a region with LocalWrite. LocalWrite may be among them, without effect: programs pass the
	// rights of the region on, which every adapter accepts.
	Access Access
}

// Bind binds a window to part of a region and returns the window's new rkey.
// Errors: ErrKey (no such window or region, or a stale rkey), ErrDomain, errState
// (type 2 that is bound, or its present tag), ErrAccess, ErrBounds,
// *AttributeError. After an error the window is as it was.
func (t *Table) Bind(b Bind) (rkey uint32, err error) {
	w := t.window(b.Key)
	if w == nil {
		return 0, ErrKey
	}
	if w.PD != b.PD {
		return 0, ErrDomain
	}
	if err := w.mayBind(&b); err != nil {
		return 0, err
	}
	if b.Length == 0 { // type 1 only
		t.unbind(w)
		w.key = NextKey(w.key)
		return w.key, nil
	}
	r, err := t.bindable(&b)
	if err != nil {
		return 0, err
	}
	t.unbind(w)
	r.windows++
	w.region, w.addr, w.length, w.access = r, b.Addr, b.Length, b.Access
	if w.Type == 2 {
		w.qpn, w.key = b.QPN, b.Key
		t.bound++
	} else {
		w.key = NextKey(w.key)
	}
	return w.key, nil
}

func (w *Window) mayBind(b *Bind) error {
	rights := RemoteRead | RemoteWrite | RemoteAtomic | LocalWrite // the last means nothing here, but adapters take it
	if w.Type == 2 {
		rights |= ZeroBased
	}
	switch {
	case b.Access&^rights != 0:
		return &AttributeError{"window access", uint64(b.Access), "local write, remote read, write, atomic; zero-based for type 2"}
	case w.Type == 1 && b.Key != w.key:
		return ErrKey
	case w.Type == 2 && (w.region != nil || b.Key == w.key):
		return errState
	case w.Type == 2 && b.Length == 0:
		return &AttributeError{"window length", 0, "1 or more for type 2"}
	}
	return nil
}

// bindable checks the region of a bind.
func (t *Table) bindable(b *Bind) (*Region, error) {
	need := WindowBind
	if b.Access&(RemoteWrite|RemoteAtomic) != 0 {
		need |= LocalWrite
	}
	return t.Local(b.PD, b.LKey, b.Addr, b.Length, need)
}

// Invalidate unbinds a type 2 window: for a local invalidate posted to QP qpn, or a send with invalidate
// that it received (IBA 9.4.1.1, 10.6.7.2.4). Errors: ErrKey (nothing has this key, or the window is not
// bound), ErrAccess (a region or a type 1 window), ErrDomain (another PD or QP).
func (t *Table) Invalidate(pd PD, qpn, rkey uint32) error {
	if t.region(rkey) != nil {
		return ErrAccess
	}
	w := t.window(rkey)
	switch {
	case w == nil || w.key != rkey:
		return ErrKey
	case w.Type != 2:
		return ErrAccess
	case w.region == nil:
		return ErrKey
	case w.PD != pd || w.qpn != qpn:
		return ErrDomain
	}
	t.unbind(w)
	return nil
}

// ReleaseQP unbinds every type 2 window bound to QP qpn, at the end of the QP. It costs nothing while no
// type 2 window is bound.
func (t *Table) ReleaseQP(qpn uint32) {
	if t.bound == 0 {
		return
	}
	for i := range t.entries {
		if w := t.entries[i].window; w != nil && w.Type == 2 && w.region != nil && w.qpn == qpn {
			t.unbind(w)
		}
	}
}

func (t *Table) unbind(w *Window) {
	if w.region == nil {
		return
	}
	w.region.windows--
	w.region = nil
	if w.Type == 2 {
		t.bound--
	}
}

func (w *Window) remote(pd PD, qpn uint32, addr, n uint64, need Access) (Span, error) {
	if w.region == nil {
		return Span{}, ErrKey
	}
	if w.PD != pd || (w.Type == 2 && w.qpn != qpn) {
		return Span{}, ErrDomain
	}
	if w.access&need != need {
		return Span{}, ErrAccess
	}
	off := addr
	if w.access&ZeroBased == 0 {
		off = addr - w.addr // wraps to a huge offset below the start
	}
	if off > w.length || n > w.length-off {
		return Span{}, ErrBounds
	}
	return Span{w.region, w.addr + off}, nil
}
