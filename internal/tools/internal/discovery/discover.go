package discovery

import (
	"context"
	"sync"

	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// defaultOutstanding is the default number of requests in progress at a time.
const defaultOutstanding = 64

// Asking says how to send requests.
type Asking struct {
	Timing      umad.Timing
	MKey        uint64
	Outstanding int // requests in progress at a time; 0: defaultOutstanding
}

// Discover walks a fabric from a port. Faults are requests that were not answered; the error says why
// there is no fabric, or why the walk was abandoned.
func Discover(ctx context.Context, p *umad.Port, o Options, a Asking) (*Fabric, []*Fault, error) {
	if a.Outstanding == 0 {
		a.Outstanding = defaultOutstanding
	}
	d := &discovery{port: p, asking: a, walk: NewWalk(o), over: make(chan struct{})}
	d.proceed()
	select {
	case <-d.over:
		return d.walk.Result()
	case <-ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ended = true // ignore what still arrives
		return nil, nil, ctx.Err()
	}
}

// discovery is a walk in progress. Whoever delivers an answer continues it, so that no other goroutine
// must be woken.
type discovery struct {
	port   *umad.Port
	asking Asking
	over   chan struct{}

	mu    sync.Mutex
	walk  *Walk
	under int
	ended bool
}

// step is a request to be sent.
type step struct {
	number int
	packet *[mad.Len]byte
}

// proceed sends the requests that may be sent.
func (d *discovery) proceed() {
	var room [8]step
	for steps := d.steps(room[:0]); len(steps) > 0; steps = d.steps(steps[:0]) {
		for _, s := range steps {
			d.port.Start(umad.Address{LID: ib.LIDPermissive, QP: umad.SMIQP}, s.packet, d.asking.Timing, func(a *umad.Datagram, err error) {
				d.take(s.number, a, err)
				d.proceed()
			})
		}
	}
}

// steps returns requests that may be sent now. If there are none and none is in progress, the walk is
// over.
func (d *discovery) steps(list []step) []step {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.ended && d.under < d.asking.Outstanding && len(list) < cap(list) {
		r, number := d.walk.Next()
		if r == nil {
			break
		}
		m, err := r.packet(d.asking.MKey)
		if err != nil {
			d.walk.Answer(number, nil, err)
			continue
		}
		d.under++
		list = append(list, step{number, m})
	}
	if !d.ended && d.under == 0 {
		d.ended = true
		close(d.over)
	}
	return list
}

// take passes an answer to the walk.
func (d *discovery) take(number int, a *umad.Datagram, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.under--
	if d.ended {
		return
	}
	if err != nil {
		d.walk.Answer(number, nil, err)
		return
	}
	m, err := mad.ParseSMP(a.MAD[:])
	if err == nil && m.StatusCode() != mad.StatusOK {
		err = &umad.StatusError{Status: m.StatusCode()}
	}
	d.walk.Answer(number, &m.Data, err)
}

// packet returns the request as a MAD.
func (r *Request) packet(key uint64) (*[mad.Len]byte, error) {
	m := mad.NewSMP(mad.MethodGet, r.Attribute, r.Modifier, 0)
	m.MKey = key
	if err := m.Direct(r.Path[1:]); err != nil {
		return nil, err
	}
	return (*[mad.Len]byte)(m.Append(make([]byte, 0, mad.Len))), nil
}
