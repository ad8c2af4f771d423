package device

import (
	"context"
	"errors"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
)

// pd is a protection domain.
type pd struct {
	handle  command.Handle
	adapter *adapter
	number  memory.PD
	uses    int
}

// mr is a memory region.
type mr struct {
	handle  command.Handle
	pd      *pd
	region  *memory.Region
	release func()
	// segment and offset are its location in shared memory; exported: it is in the key table of its
	// client.
	segment  uint32
	offset   uint64
	exported bool
	dm       *dm  // that it is in; nil: none
	ending   bool // a call that destroys it is waiting until nobody uses it
}

// mw is a memory window.
type mw struct {
	handle command.Handle
	pd     *pd
	window *memory.Window
}

// ah is an address handle. Requests in progress keep its route alive.
type ah struct {
	handle command.Handle
	pd     *pd
	route  frame.Route
	choice choice
}

// allAccess are the memory.Access bits that a program may ask for.
const allAccess = memory.LocalWrite | memory.RemoteWrite | memory.RemoteRead | memory.RemoteAtomic |
	memory.WindowBind | memory.ZeroBased | memory.OnDemand | memory.FlushGlobal

// begin takes the loop lock for a command of c on an adapter.
func (c *Client) begin(ctx context.Context, index uint32) (*adapter, error) {
	if ctx.Err() != nil {
		return nil, command.Ended(ctx)
	}
	c.host.lock()
	a, err := c.usable(index)
	if err != nil {
		c.host.unlock()
		return nil, err
	}
	c.host.commands++
	return a, nil
}

// usable returns an adapter if it accepts new requests. The caller holds the loop lock.
func (c *Client) usable(index uint32) (*adapter, error) {
	if c.closed {
		return nil, command.Errorf(command.Canceled, "the client is closed")
	}
	a, err := c.adapter(index)
	if err != nil {
		return nil, err
	}
	return a, a.usable()
}

// enter takes the loop lock for a command of c on objects.
func (c *Client) enter(ctx context.Context) error {
	if err := c.attempt(ctx); err != nil {
		return err
	}
	c.host.commands++
	return nil
}

// attempt is enter for a command that may still have to wait, and so is not counted as carried out.
func (c *Client) attempt(ctx context.Context) error {
	if ctx.Err() != nil {
		return command.Ended(ctx)
	}
	c.host.lock()
	if c.closed {
		c.host.unlock()
		return command.Errorf(command.Canceled, "the client is closed")
	}
	return nil
}

// room checks that one more object is allowed: of its kind on the adapter and of any kind for the client.
func (c *Client) room(a *adapter, what string, live int, most uint32) error {
	if uint64(live) >= uint64(most) {
		return full(what, most)
	}
	if uint64(c.live()) >= a.limits.ClientObjects {
		return command.Errorf(command.Exhausted, "%s: the client has all %d objects that it may have", what, a.limits.ClientObjects)
	}
	return nil
}

func (c *Client) live() int {
	return c.pds.Live() + c.mrs.Live() + c.mws.Live() + c.cqs.Live() + c.srqs.Live() + c.qps.Live() + c.ahs.Live() + c.cms.Live() +
		c.dms.Live() + c.xrcds.Live() + c.flows.Live() + c.spreads.Live()
}

// AllocPD implements command.Commands.
func (c *Client) AllocPD(ctx context.Context, index uint32) (command.Handle, error) {
	a, err := c.begin(ctx, index)
	if err != nil {
		return 0, err
	}
	defer c.host.unlock()
	if err := c.room(a, "PD", a.objects.PD, a.limits.PD); err != nil {
		return 0, err
	}
	a.nextPD++
	p := &pd{adapter: a, number: a.nextPD}
	if p.handle, err = c.pds.Add(p); err != nil {
		return 0, err
	}
	a.objects.PD++
	return p.handle, nil
}

// domain returns a PD on an adapter that accepts new requests.
func (c *Client) domain(h command.Handle) (*pd, error) {
	p := c.pds.Get(h)
	if p == nil {
		return nil, notFound("PD", h)
	}
	return p, p.adapter.usable()
}

// RegisterMemory implements command.Commands.
func (c *Client) RegisterMemory(ctx context.Context, r command.RegisterMemory) (command.Memory, error) {
	return c.registerAs(ctx, r, nil)
}

// RegisterMemoryAt implements command.Extended.
func (c *Client) RegisterMemoryAt(ctx context.Context, r command.RegisterMemoryAt) (command.Memory, error) {
	if err := checkIOVA(&r); err != nil {
		return command.Memory{}, err
	}
	return c.registerAs(ctx, r.RegisterMemory, &r.IOVA)
}

func checkIOVA(r *command.RegisterMemoryAt) error {
	if r.IOVA+r.Length < r.IOVA {
		return command.Errorf(command.Invalid, "Length is %d from IOVA %#x, want no wrap", r.Length, r.IOVA)
	}
	return nil
}

// registerAs registers memory whose addresses begin at iova, or are those of the program if nil.
func (c *Client) registerAs(ctx context.Context, r command.RegisterMemory, iova *uint64) (command.Memory, error) {
	got, err := c.reach(&r)
	if err != nil {
		return command.Memory{}, err
	}
	m, err := c.register(ctx, r, iova, got)
	if err != nil && got.Release != nil {
		got.Release()
	}
	return m, err
}

// reach checks the attributes of a region and finds out how its memory is accessed. It may map or probe
// memory: the caller does not hold the loop lock.
func (c *Client) reach(r *command.RegisterMemory) (Reached, error) {
	access := memory.Access(r.Access)
	if access&memory.FlushPersistent != 0 {
		return Reached{}, command.Errorf(command.Invalid, "Access is %#x: flush persistent wants persistent memory, and this is none", r.Access)
	}
	if access&^allAccess != 0 {
		return Reached{}, command.Errorf(command.Invalid, "Access is %#x, want bits of %#x", r.Access, uint32(allAccess))
	}
	if access&(memory.RemoteWrite|memory.RemoteAtomic) != 0 && access&memory.LocalWrite == 0 {
		return Reached{}, command.Errorf(command.Invalid, "Access is %#x: remote write and atomics need local write", r.Access)
	}
	if r.Length == 0 && r.Segment == 0 || r.Base+r.Length < r.Base { // of device memory nothing may be registered
		return Reached{}, command.Errorf(command.Invalid, "Length is %d from %#x, want at least 1 and no wrap", r.Length, r.Base)
	}
	if most := defaultLimits().Region; r.Length > most && !r.Implicit() {
		return Reached{}, command.Errorf(command.Invalid, "Length is %d, want at most %d", r.Length, most)
	}
	got, err := c.reacher(access&memory.OnDemand != 0)(*r)
	return got, asError(err)
}

// reacher returns the function that finds memory of the program.
func (c *Client) reacher(onDemand bool) func(command.RegisterMemory) (Reached, error) {
	switch {
	case c.cfg.Reach != nil:
		return c.cfg.Reach
	case !onDemand:
		return ownMemory
	case c.cfg.OnDemand != nil:
		return c.cfg.OnDemand
	}
	return func(r command.RegisterMemory) (Reached, error) { // a missing page would be a fault of this process
		return Reached{}, command.Errorf(command.Unsupported, "Access is %#x: no paging on demand in the adapter's own process", r.Access)
	}
}

func (c *Client) register(ctx context.Context, r command.RegisterMemory, iova *uint64, got Reached) (command.Memory, error) {
	if err := c.enter(ctx); err != nil {
		return command.Memory{}, err
	}
	defer c.host.unlock()
	p, err := c.domain(r.PD)
	if err != nil {
		return command.Memory{}, err
	}
	a := p.adapter
	want, err := p.describe(&r, iova, got)
	if err != nil {
		return command.Memory{}, err
	}
	if err := c.room(a, "memory regions", a.objects.MR, a.limits.MR); err != nil {
		return command.Memory{}, err
	}
	region, err := a.memory.Register(want)
	if err != nil {
		return command.Memory{}, asError(err)
	}
	m := &mr{pd: p, region: region, release: got.Release, segment: r.Segment, offset: r.SegmentOffset}
	if err = m.occupy(c); err == nil {
		m.handle, err = c.mrs.Add(m)
	}
	if err != nil {
		m.vacate()
		_ = a.memory.Deregister(region.Key)
		return command.Memory{}, err
	}
	p.uses++
	a.objects.MR++
	a.regionPages += pagesOf(region)
	c.export(m)
	return m.answer(got), nil
}

// describe returns the region of p that a program asks for.
func (p *pd) describe(r *command.RegisterMemory, iova *uint64, got Reached) (memory.Region, error) {
	if most := p.adapter.limits.Region; r.Length > most && !r.Implicit() {
		return memory.Region{}, command.Errorf(command.Invalid, "Length is %d, want at most %d", r.Length, most)
	}
	want := memory.Region{
		PD: p.number, Base: r.Base, Length: r.Length, Access: memory.Access(r.Access), Bytes: got.Bytes, Remote: got.Remote,
	}
	if iova != nil {
		want.IOVA, want.Named = *iova, true
	}
	return want, nil
}

func (m *mr) answer(got Reached) command.Memory {
	return command.Memory{Handle: m.handle, LKey: m.region.Key, RKey: m.region.Key, Path: got.Path}
}

// ownMemory is the Reach function for memory of this process.
func ownMemory(r command.RegisterMemory) (Reached, error) {
	if r.Segment != 0 {
		return Reached{}, command.Errorf(command.Invalid, "Segment is %d, want 0: the program has no shared segments", r.Segment)
	}
	if r.Base == 0 || uint64(uintptr(r.Base)) != r.Base || r.Length > 1<<46 {
		return Reached{}, command.Errorf(command.Invalid, "Base is %#x, want an address of this process", r.Base)
	}
	base := uintptr(r.Base)
	p := *(**byte)(unsafe.Pointer(&base))
	return Reached{Bytes: unsafe.Slice(p, r.Length), Path: 1}, nil
}

// AllocWindow implements command.Commands.
func (c *Client) AllocWindow(ctx context.Context, h command.Handle, typ uint32) (command.Memory, error) {
	if err := c.enter(ctx); err != nil {
		return command.Memory{}, err
	}
	defer c.host.unlock()
	p, err := c.domain(h)
	if err != nil {
		return command.Memory{}, err
	}
	a := p.adapter
	if typ != 1 && typ != 2 {
		return command.Memory{}, command.Errorf(command.Invalid, "type is %d, want 1 or 2", typ)
	}
	if err := c.room(a, "memory windows", a.objects.MW, a.limits.MW); err != nil {
		return command.Memory{}, err
	}
	w, err := a.memory.AllocWindow(p.number, uint8(typ))
	if err != nil {
		return command.Memory{}, asError(err)
	}
	m := &mw{pd: p, window: w}
	if m.handle, err = c.mws.Add(m); err != nil {
		_ = a.memory.FreeWindow(w.Key())
		return command.Memory{}, err
	}
	p.uses++
	a.objects.MW++
	return command.Memory{Handle: m.handle, RKey: w.Key()}, nil
}

// CreateAH implements command.Commands.
func (c *Client) CreateAH(ctx context.Context, r command.CreateAH) (command.Handle, error) {
	err := c.resolve(ctx, func() *adapter {
		if p := c.pds.Get(r.PD); p != nil {
			return p.adapter
		}
		return nil
	}, r.AV)
	if err != nil {
		return 0, err
	}
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	defer c.host.unlock()
	p, err := c.domain(r.PD)
	if err != nil {
		return 0, err
	}
	a := p.adapter
	if err := c.room(a, "address handles", a.objects.AH, a.limits.AH); err != nil {
		return 0, err
	}
	if err := a.checkSource(&r.AV); err != nil {
		return 0, err
	}
	route, err := a.route(r.AV)
	if err != nil {
		return 0, err
	}
	o := &ah{pd: p, route: *route, choice: chosen(&r.AV)}
	if o.handle, err = c.ahs.Add(o); err != nil {
		o.route.Release()
		return 0, err
	}
	p.uses++
	a.objects.AH++
	return o.handle, nil
}

// resolveAH returns the route of an address handle in a request of a QP in pd.
func (c *Client) resolveAH(h uint32, p *pd) *frame.Route {
	if o := c.ahs.Get(command.Handle(h)); o != nil && o.pd == p {
		return &o.route
	}
	return nil
}

// asError converts any error to a *command.Error.
func asError(err error) error {
	var ce *command.Error
	if err == nil || errors.As(err, &ce) {
		return err
	}
	var attr *memory.AttributeError
	code := command.Internal
	switch {
	case errors.As(err, &attr):
		code = command.Invalid
	case errors.Is(err, memory.ErrFull):
		code = command.Exhausted
	case errors.Is(err, memory.ErrBound):
		code = command.Busy
	case errors.Is(err, memory.ErrKey):
		code = command.NotFound
	case errors.Is(err, memory.ErrGone), errors.Is(err, memory.ErrBounds), errors.Is(err, memory.ErrAccess),
		errors.Is(err, memory.ErrDomain):
		code = command.Access
	}
	return &command.Error{Code: code, Detail: err.Error()}
}
