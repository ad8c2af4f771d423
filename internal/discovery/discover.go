package discovery

import (
	"context"

	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// DefaultOutstanding is how many requests are under way at once where nobody says.
const DefaultOutstanding = 64

// Asking says how a walk asks.
type Asking struct {
	Timing      umad.Timing
	MKey        uint64
	Outstanding int // requests under way at once; 0: DefaultOutstanding
}

// Discover walks a fabric from a port. What did not answer is in the faults; the error is why there is no fabric, or
// why the walk was given up in the middle.
func Discover(ctx context.Context, p *umad.Port, o Options, a Asking) (*Fabric, []*Fault, error) {
	if a.Outstanding == 0 {
		a.Outstanding = DefaultOutstanding
	}
	type answer struct {
		number int
		mad    [mad.Len]byte
		err    error
	}
	answers := make(chan answer, a.Outstanding)
	w := NewWalk(o)
	under := 0
	for {
		for under < a.Outstanding {
			r, number := w.Next()
			if r == nil {
				break
			}
			m, err := r.packet(a.MKey)
			if err != nil {
				w.Answer(number, nil, err)
				continue
			}
			under++
			p.Start(umad.Address{LID: ib.LIDPermissive, QP: umad.SMIQP}, m, a.Timing, func(d *umad.Datagram, err error) {
				x := answer{number: number, err: err}
				if err == nil {
					x.mad = d.MAD
				}
				answers <- x
			})
		}
		if under == 0 {
			return w.Result()
		}
		select {
		case x := <-answers:
			under--
			w.take(x.number, &x.mad, x.err)
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// packet is the request as it is sent.
func (r *Request) packet(key uint64) (*[mad.Len]byte, error) {
	m := mad.NewSMP(mad.MethodGet, r.Attribute, r.Modifier, 0)
	m.MKey = key
	if err := m.Direct(r.Path[1:]); err != nil {
		return nil, err
	}
	return (*[mad.Len]byte)(m.Append(make([]byte, 0, mad.Len))), nil
}

// take hands an answer to the walk.
func (w *Walk) take(number int, m *[mad.Len]byte, err error) {
	if err != nil {
		w.Answer(number, nil, err)
		return
	}
	a, err := mad.ParseSMP(m[:])
	if err == nil && a.StatusCode() != mad.StatusOK {
		err = &umad.StatusError{Status: a.StatusCode()}
	}
	w.Answer(number, &a.Data, err)
}
