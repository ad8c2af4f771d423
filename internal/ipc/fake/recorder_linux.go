package fake

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
)

// Recorder records the arguments of each command and answers with random values.
type Recorder struct {
	mu     sync.Mutex
	before []any // arguments of the command before the last
	args   []any
	ret    any
}

func (r *Recorder) keep(ret any, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if args != nil {
		r.before, r.args = r.args, args
	}
	r.ret = ret
}

// Last returns the arguments of the last command and its answer.
func (r *Recorder) Last() (args []any, ret any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]any{}, r.args...), r.ret
}

// LastTwo returns the arguments of the last two commands.
func (r *Recorder) LastTwo() [][]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return [][]any{r.before, r.args}
}

func note[R any](r *Recorder, args ...any) (R, error) {
	var v R
	Fill(reflect.ValueOf(&v).Elem())
	r.keep(v, append([]any{}, args...)...)
	return v, nil
}

func noteDone(r *Recorder, args ...any) error {
	r.keep(nil, append([]any{}, args...)...)
	return nil
}

// Fill sets every field except those named _ to a random value.
func Fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "_" {
				Fill(v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			Fill(v.Index(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			Fill(v.Index(i))
		}
	default:
		v.SetUint(rand.Uint64() >> (64 - v.Type().Bits()))
	}
}

// Adapters implements server.Session.
func (r *Recorder) Adapters(context.Context) ([]command.AdapterInfo, error) {
	return note[[]command.AdapterInfo](r)
}

// GIDs implements server.Session.
func (r *Recorder) GIDs(_ context.Context, a uint32) ([]command.GID, error) {
	return note[[]command.GID](r, a)
}

// Interfaces implements server.Session.
func (r *Recorder) Interfaces(_ context.Context, a uint32) ([]command.Interface, error) {
	return note[[]command.Interface](r, a)
}

// LinkAddresses implements command.Extended.
func (r *Recorder) LinkAddresses(_ context.Context, a uint32) ([]command.LinkAddress, error) {
	return note[[]command.LinkAddress](r, a)
}

// Firmware implements command.Extended.
func (r *Recorder) Firmware(_ context.Context, a uint32) (command.Firmware, error) {
	return note[command.Firmware](r, a)
}

// CreateFlow implements command.Extended.
func (r *Recorder) CreateFlow(_ context.Context, q command.CreateFlow) (command.Handle, error) {
	return note[command.Handle](r, q)
}

// LimitQP implements command.Extended.
func (r *Recorder) LimitQP(_ context.Context, q command.LimitQP) error { return noteDone(r, q) }

// CreateRSS implements command.Extended.
func (r *Recorder) CreateRSS(_ context.Context, q command.CreateRSS) (command.Handle, error) {
	return note[command.Handle](r, q)
}

// SetRSS implements command.Extended.
func (r *Recorder) SetRSS(_ context.Context, q command.SetRSS) error { return noteDone(r, q) }

// SetFrameFlags implements command.Extended.
func (r *Recorder) SetFrameFlags(_ context.Context, q command.SetFrameFlags) error {
	return noteDone(r, q)
}

// FlowCounters implements command.Extended.
func (r *Recorder) FlowCounters(_ context.Context, flow command.Handle) (command.FlowCounters, error) {
	return note[command.FlowCounters](r, flow)
}

// FramePort implements command.Extended.
func (r *Recorder) FramePort(_ context.Context, a uint32) (command.FramePort, error) {
	return note[command.FramePort](r, a)
}

// Counters implements server.Session.
func (r *Recorder) Counters(_ context.Context, a uint32) ([]command.Counter, error) {
	return note[[]command.Counter](r, a)
}

// Port implements server.Session.
func (r *Recorder) Port(_ context.Context, a uint32) (command.PortInfo, error) {
	return note[command.PortInfo](r, a)
}

// AllocPD implements server.Session.
func (r *Recorder) AllocPD(_ context.Context, a uint32) (command.Handle, error) {
	return note[command.Handle](r, a)
}

// RegisterMemory implements server.Session.
func (r *Recorder) RegisterMemory(_ context.Context, a command.RegisterMemory) (command.Memory, error) {
	return note[command.Memory](r, a)
}

// AllocWindow implements server.Session.
func (r *Recorder) AllocWindow(_ context.Context, a command.Handle, b uint32) (command.Memory, error) {
	return note[command.Memory](r, a, b)
}

// CreateCQ implements server.Session.
func (r *Recorder) CreateCQ(_ context.Context, a command.CreateCQ) (command.Queue, error) {
	q, err := note[command.Queue](r, a)
	q.Ring.Arena, q.Ring.Offset = 0, 0
	r.keep(q)
	return q, err
}

// ResizeCQ implements server.Session.
func (r *Recorder) ResizeCQ(_ context.Context, a command.Handle, b uint32) (command.Queue, error) {
	q, err := note[command.Queue](r, a, b)
	q.Ring.Arena, q.Ring.Offset = 0, 64
	r.keep(q)
	return q, err
}

// ModerateCQ implements server.Session.
func (r *Recorder) ModerateCQ(_ context.Context, a command.ModerateCQ) error { return noteDone(r, a) }

// CreateSRQ implements server.Session.
func (r *Recorder) CreateSRQ(_ context.Context, a command.CreateSRQ) (command.Queue, error) {
	return note[command.Queue](r, a)
}

// ModifySRQ implements server.Session.
func (r *Recorder) ModifySRQ(_ context.Context, a command.ModifySRQ) error { return noteDone(r, a) }

// ResizeSRQ implements server.Session.
func (r *Recorder) ResizeSRQ(_ context.Context, a command.Handle, b uint32) (command.Queue, error) {
	return note[command.Queue](r, a, b)
}

// QuerySRQ implements server.Session.
func (r *Recorder) QuerySRQ(_ context.Context, a command.Handle) (command.SRQInfo, error) {
	return note[command.SRQInfo](r, a)
}

// CreateQP implements server.Session.
func (r *Recorder) CreateQP(_ context.Context, a command.CreateQP) (command.QueuePair, error) {
	return note[command.QueuePair](r, a)
}

// ModifyQP implements server.Session.
func (r *Recorder) ModifyQP(_ context.Context, a command.ModifyQP) error { return noteDone(r, a) }

// QueryQP implements server.Session.
func (r *Recorder) QueryQP(_ context.Context, a command.Handle) (command.QPInfo, error) {
	return note[command.QPInfo](r, a)
}

// CreateAH implements server.Session.
func (r *Recorder) CreateAH(_ context.Context, a command.CreateAH) (command.Handle, error) {
	return note[command.Handle](r, a)
}

// AttachMulticast implements server.Session.
func (r *Recorder) AttachMulticast(_ context.Context, a command.Handle, b command.Addr) error {
	return noteDone(r, a, b)
}

// DetachMulticast implements server.Session.
func (r *Recorder) DetachMulticast(_ context.Context, a command.Handle, b command.Addr) error {
	return noteDone(r, a, b)
}

// Destroy implements server.Session.
func (r *Recorder) Destroy(_ context.Context, a command.Kind, b command.Handle) error {
	return noteDone(r, a, b)
}

// CMCreate implements server.Session.
func (r *Recorder) CMCreate(_ context.Context, a command.CMCreate) (command.Handle, error) {
	return note[command.Handle](r, a)
}

// CMBind implements server.Session.
func (r *Recorder) CMBind(_ context.Context, a command.Handle, b command.Endpoint) (command.Endpoint, error) {
	return note[command.Endpoint](r, a, b)
}

// CMListen implements server.Session.
func (r *Recorder) CMListen(_ context.Context, a command.Handle, b uint32) error {
	return noteDone(r, a, b)
}

// CMConnect implements server.Session.
func (r *Recorder) CMConnect(_ context.Context, a command.CMConnect) (command.Handle, error) {
	return note[command.Handle](r, a)
}

// CMAccept implements server.Session.
func (r *Recorder) CMAccept(_ context.Context, a command.CMAccept) error { return noteDone(r, a) }

// CMEstablish implements server.Session.
func (r *Recorder) CMEstablish(_ context.Context, a command.Handle) error { return noteDone(r, a) }

// CMReject implements server.Session.
func (r *Recorder) CMReject(_ context.Context, a command.CMReject) error { return noteDone(r, a) }

// CMDisconnect implements server.Session.
func (r *Recorder) CMDisconnect(_ context.Context, a command.Handle) error { return noteDone(r, a) }

// CMQuery implements server.Session.
func (r *Recorder) CMQuery(_ context.Context, a command.Handle) (command.CMInfo, error) {
	return note[command.CMInfo](r, a)
}

// CMAttributes implements server.Session.
func (r *Recorder) CMAttributes(_ context.Context, a command.Handle, b command.QPState) (command.ModifyQP, error) {
	return note[command.ModifyQP](r, a, b)
}

// Events implements server.Session.
func (r *Recorder) Events(ctx context.Context, _ []command.Event) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}
