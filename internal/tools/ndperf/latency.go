package ndperf

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/softvpi/softvpi/nd"
)

// latencyClient measures one message size: half a round trip for send and write,
// the whole operation for read.
func (e *endpoint) latencyClient(ctx context.Context, o *options, bytes int, remote *buffer, r *receiver, p *progress) (Row, error) {
	var h histogram
	t := newPinger(e, o.Inline, bytes, remote, r)
	cpu, start := ProcessorTime(), time.Now()
	before := start
	for i := int64(1); o.Duration > 0 || i <= o.Iterations; i++ {
		if err := t.send(i); err != nil {
			return Row{}, err
		}
		if _, err := t.await(ctx, i); err != nil {
			return Row{}, err
		}
		now := time.Now()
		took := now.Sub(before)
		if e.test.Verb != Read {
			took /= 2
		}
		h.add(took)
		before = now
		if o.Duration > 0 && now.Sub(start) >= o.Duration || e.stop.Err() != nil {
			break
		}
		if p.latency(bytes, &h, start) {
			before = time.Now() // do not count the time for the progress line
		}
	}
	row := newRow(1, bytes, int64(h.n), time.Since(start), ProcessorTime()-cpu)
	row.Latency = h.summary()
	return row, nil
}

// latencyServer answers every ping of one message size until the client says that it is done.
func (e *endpoint) latencyServer(ctx context.Context, inline, bytes int, remote *buffer, r *receiver) (Row, *message, error) {
	cpu, start := ProcessorTime(), time.Now()
	var pings int64
	if e.test.Verb != Read {
		t := newPinger(e, inline, bytes, remote, r)
		for {
			came, err := t.await(ctx, pings+1)
			if err != nil {
				return Row{}, nil, err
			}
			if !came {
				break
			}
			pings++
			if err := t.send(pings); err != nil {
				return Row{}, nil, err
			}
		}
	}
	m, err := e.hear(ctx, "end")
	if err != nil {
		return Row{}, nil, err
	}
	if e.test.Verb == Read {
		pings = m.Round.Iterations
	}
	return newRow(1, bytes, pings, time.Since(start), ProcessorTime()-cpu), m, nil
}

// pinger sends and awaits the pings of a latency test.
type pinger struct {
	e        *endpoint
	bytes    int
	flags    nd.OpFlags
	remote   *buffer
	receiver *receiver
	under    int // requests without a result yet
	reads    int64
	sge      [1]nd.SGE
	out      *byte   // last byte of outgoing messages
	in       *uint32 // the word with the last byte of incoming messages
	shift    int     // of that byte in the word
	each     func(*nd.Result) error
}

func newPinger(e *endpoint, inline, bytes int, remote *buffer, r *receiver) *pinger {
	last := bytes - 1
	t := &pinger{e: e, bytes: bytes, remote: remote, receiver: r, out: &e.mem[e.half()+last],
		in: (*uint32)(unsafe.Pointer(&e.mem[last&^3])), shift: 8 * (last & 3)}
	if bytes <= inline {
		t.flags = nd.OpFlagInline
	}
	at := e.half()
	if e.test.Verb == Read {
		at = 0
	}
	t.sge[0] = e.sge(at, bytes)
	t.each = t.result // created once: a method value allocates
	return t
}

// send starts ping number i. Its last byte carries the number, which the receiver of a write waits for;
// consecutive numbers differ.
func (t *pinger) send(i int64) error {
	if t.e.test.Verb != Read {
		*t.out = byte(i)
	}
	t.under++
	return t.e.submit(t.e.data[0], requestContext(kindRequest, 0, 1), t.sge[:], t.remote, 0, t.flags)
}

// await waits for the peer's ping number i, or for the read to complete. It returns false if a control
// message arrived instead: the peer is done.
func (t *pinger) await(ctx context.Context, i int64) (came bool, err error) {
	for {
		if t.arrived(i) && t.under < latencyDepth {
			return true, nil
		}
		n, err := t.e.poll(ctx, t.each)
		if err != nil {
			return false, err
		}
		if n > 0 && len(t.e.inbox) > 0 {
			return false, nil
		}
	}
}

func (t *pinger) arrived(i int64) bool {
	switch t.e.test.Verb {
	case Send:
		return t.receiver.count >= i
	case Write:
		return byte(atomic.LoadUint32(t.in)>>t.shift) == byte(i)
	}
	return t.reads >= i
}

func (t *pinger) result(x *nd.Result) error {
	switch kind, _, _ := splitContext(x.RequestContext); kind {
	case kindRequest:
		t.under--
		t.reads++
		return nil
	case kindRecv:
		return t.receiver.received(x)
	}
	return errors.New("result of an unknown request")
}

// clear makes the memory for the peer's pings differ from ping 1.
func (e *endpoint) clear() {
	if e.test.Measure == Latency {
		clear(e.mem[:e.half()])
	}
}
