package ipc

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
)

// recorder records the arguments of each command and answers with random values.
type recorder struct {
	mu     sync.Mutex
	before []any // arguments of the command before the last
	args   []any
	ret    any
}

func (r *recorder) keep(ret any, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if args != nil {
		r.before, r.args = r.args, args
	}
	r.ret = ret
}

func (r *recorder) last() (args []any, ret any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]any{}, r.args...), r.ret
}

func (r *recorder) lastTwo() [][]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return [][]any{r.before, r.args}
}

func note[R any](r *recorder, args ...any) (R, error) {
	var v R
	fill(reflect.ValueOf(&v).Elem())
	r.keep(v, append([]any{}, args...)...)
	return v, nil
}

func noteDone(r *recorder, args ...any) error {
	r.keep(nil, append([]any{}, args...)...)
	return nil
}

// fill sets every field except those named _ to a random value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "_" {
				fill(v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fill(v.Index(i))
		}
	default:
		v.SetUint(rand.Uint64() >> (64 - v.Type().Bits()))
	}
}

func (r *recorder) Adapters(context.Context) ([]command.AdapterInfo, error) {
	return note[[]command.AdapterInfo](r)
}
func (r *recorder) GIDs(_ context.Context, a uint32) ([]command.GID, error) {
	return note[[]command.GID](r, a)
}
func (r *recorder) Counters(_ context.Context, a uint32) ([]command.Counter, error) {
	return note[[]command.Counter](r, a)
}
func (r *recorder) Port(_ context.Context, a uint32) (command.PortInfo, error) {
	return note[command.PortInfo](r, a)
}
func (r *recorder) AllocPD(_ context.Context, a uint32) (command.Handle, error) {
	return note[command.Handle](r, a)
}
func (r *recorder) RegisterMemory(_ context.Context, a command.RegisterMemory) (command.Memory, error) {
	return note[command.Memory](r, a)
}
func (r *recorder) AllocWindow(_ context.Context, a command.Handle, b uint32) (command.Memory, error) {
	return note[command.Memory](r, a, b)
}
func (r *recorder) CreateCQ(_ context.Context, a command.CreateCQ) (command.Queue, error) {
	q, err := note[command.Queue](r, a)
	q.Ring.Arena, q.Ring.Offset = 0, 0
	r.keep(q)
	return q, err
}
func (r *recorder) ResizeCQ(_ context.Context, a command.Handle, b uint32) (command.Queue, error) {
	q, err := note[command.Queue](r, a, b)
	q.Ring.Arena, q.Ring.Offset = 0, 64
	r.keep(q)
	return q, err
}
func (r *recorder) ModerateCQ(_ context.Context, a command.ModerateCQ) error { return noteDone(r, a) }
func (r *recorder) CreateSRQ(_ context.Context, a command.CreateSRQ) (command.Queue, error) {
	return note[command.Queue](r, a)
}
func (r *recorder) ModifySRQ(_ context.Context, a command.ModifySRQ) error { return noteDone(r, a) }
func (r *recorder) ResizeSRQ(_ context.Context, a command.Handle, b uint32) (command.Queue, error) {
	return note[command.Queue](r, a, b)
}
func (r *recorder) QuerySRQ(_ context.Context, a command.Handle) (command.SRQInfo, error) {
	return note[command.SRQInfo](r, a)
}
func (r *recorder) CreateQP(_ context.Context, a command.CreateQP) (command.QueuePair, error) {
	return note[command.QueuePair](r, a)
}
func (r *recorder) ModifyQP(_ context.Context, a command.ModifyQP) error { return noteDone(r, a) }
func (r *recorder) QueryQP(_ context.Context, a command.Handle) (command.QPInfo, error) {
	return note[command.QPInfo](r, a)
}
func (r *recorder) CreateAH(_ context.Context, a command.CreateAH) (command.Handle, error) {
	return note[command.Handle](r, a)
}
func (r *recorder) AttachMulticast(_ context.Context, a command.Handle, b command.Addr) error {
	return noteDone(r, a, b)
}
func (r *recorder) DetachMulticast(_ context.Context, a command.Handle, b command.Addr) error {
	return noteDone(r, a, b)
}
func (r *recorder) Destroy(_ context.Context, a command.Kind, b command.Handle) error {
	return noteDone(r, a, b)
}
func (r *recorder) CMCreate(_ context.Context, a command.CMCreate) (command.Handle, error) {
	return note[command.Handle](r, a)
}
func (r *recorder) CMBind(_ context.Context, a command.Handle, b command.Endpoint) (command.Endpoint, error) {
	return note[command.Endpoint](r, a, b)
}
func (r *recorder) CMListen(_ context.Context, a command.Handle, b uint32) error {
	return noteDone(r, a, b)
}
func (r *recorder) CMConnect(_ context.Context, a command.CMConnect) (command.Handle, error) {
	return note[command.Handle](r, a)
}
func (r *recorder) CMAccept(_ context.Context, a command.CMAccept) error   { return noteDone(r, a) }
func (r *recorder) CMEstablish(_ context.Context, a command.Handle) error  { return noteDone(r, a) }
func (r *recorder) CMReject(_ context.Context, a command.CMReject) error   { return noteDone(r, a) }
func (r *recorder) CMDisconnect(_ context.Context, a command.Handle) error { return noteDone(r, a) }
func (r *recorder) CMQuery(_ context.Context, a command.Handle) (command.CMInfo, error) {
	return note[command.CMInfo](r, a)
}
func (r *recorder) CMAttributes(_ context.Context, a command.Handle, b command.QPState) (command.ModifyQP, error) {
	return note[command.ModifyQP](r, a, b)
}
func (r *recorder) Events(ctx context.Context, _ []command.Event) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}
