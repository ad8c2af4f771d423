package ndperf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/nd"
)

// Request contexts: the kind in the top byte, below it the queue pair's index
// and how many requests the result stands for.
const (
	kindControlRecv = iota + 1
	kindControlSend
	kindRecv
	kindRequest
	kindProbe
)

func requestContext(kind, qp, count int) uint64 {
	return uint64(kind)<<56 | uint64(qp)<<32 | uint64(count)
}

func splitContext(c uint64) (kind, qp, count int) {
	return int(c >> 56), int(c>>32) & 0xffffff, int(uint32(c))
}

const (
	controlDepth = 4 // control messages in flight each way; the sides strictly alternate
	resultBatch  = 64
	// setUpTimeout limits the set-up of the data connections.
	setUpTimeout = 2 * time.Minute
)

// endpoint is one side of a benchmark: an adapter, one completion queue for everything, the memory, the
// control connection and the data connections.
type endpoint struct {
	test    Test
	session *session.Session
	cq      *nd.CompletionQueue
	control *link
	data    []*link
	mr      *nd.MemoryRegion // of the data; peers may read and write it
	mem     []byte
	token   uint32 // local, of mr
	maxSize int
	set     int // bytes that bandwidth tests cycle through: the client's options.Cycle
	// ownMemory is this side's options.OwnMemory.
	ownMemory bool
	results   [resultBatch]nd.Result

	controlMR  *nd.MemoryRegion
	controlMem []byte // controlDepth receives, then one send
	inbox      [][]byte
	sending    bool // the control send is in progress
	polls      int
	broken     error // why there will be no more results

	probe *session.Probe  // of the control connection
	stop  context.Context // of a client: ends when the user stops the run
}

// link is one connection with its queue pair.
type link struct {
	qp        *nd.QueuePair
	connector *nd.Connector
}

// cqDepth returns the depth for the results of all requests that can be outstanding.
func cqDepth(qps, depth int) int { return 4*controlDepth + qps*2*(depth+1) }

func newEndpoint(ctx context.Context, t Test, s *session.Session, qps, depth int) (e *endpoint, err error) {
	e = &endpoint{test: t, session: s}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	if e.cq, err = s.Adapter.CreateCompletionQueue(cqDepth(qps, depth)); err != nil {
		return e, err
	}
	e.controlMem = make([]byte, (controlDepth+1)*maxMessage)
	if e.controlMR, err = s.Adapter.CreateMemoryRegion(); err != nil {
		return e, err
	}
	return e, e.controlMR.Register(ctx, e.controlMem, nd.MRFlagAllowLocalWrite)
}

// allocate allocates the data memory for messages of up to maxSize bytes: for bandwidth a set to cycle
// through plus the last message's tail, for latency one half for incoming and one for outgoing messages.
func (e *endpoint) allocate(ctx context.Context, maxSize, set int) (err error) {
	e.maxSize, e.set = maxSize, set
	n := set + maxSize
	if e.test.Measure == Latency {
		n = 2 * e.half()
	}
	if e.mr, err = e.session.Adapter.CreateMemoryRegion(); err != nil {
		return err
	}
	const flags = nd.MRFlagAllowLocalWrite | nd.MRFlagAllowRemoteRead | nd.MRFlagAllowRemoteWrite | nd.MRFlagRDMAReadSink
	if e.ownMemory {
		err = e.mr.Register(ctx, make([]byte, n), flags)
	} else {
		err = e.mr.Allocate(ctx, n, flags)
	}
	if err != nil {
		return err
	}
	e.mem, e.token = e.mr.Buffer(), e.mr.GetLocalToken()
	for i := range e.mem { // untouched pages would all map to a single page of zeros
		e.mem[i] = byte(i)
	}
	return nil
}

// sge returns an SGE for n bytes of the data at offset at.
func (e *endpoint) sge(at, n int) nd.SGE {
	return nd.SGE{Buffer: e.mem[at : at+n], MemoryRegionToken: e.token}
}

// half returns the offset of outgoing messages in the memory of a latency test.
func (e *endpoint) half() int { return (e.maxSize + 63) &^ 63 }

func (e *endpoint) buffer() *buffer {
	return &buffer{Address: e.mr.Address(), Token: e.mr.GetRemoteToken(), Length: uint64(len(e.mem))}
}

// newLink creates a queue pair and a connector for it.
func (e *endpoint) newLink(depth, inline int) (*link, error) {
	qp, err := e.session.Adapter.CreateQueuePair(nd.QueuePairConfig{
		ReceiveCompletionQueue: e.cq, InitiatorCompletionQueue: e.cq,
		ReceiveQueueDepth: depth + 1, InitiatorQueueDepth: depth + 1, InlineDataSize: inline,
	})
	if err != nil {
		return nil, err
	}
	c, err := e.session.Adapter.CreateConnector()
	if err != nil {
		return nil, errors.Join(err, qp.Close())
	}
	return &link{qp, c}, nil
}

func (l *link) close() error {
	return errors.Join(l.connector.Close(), l.qp.Close())
}

// postControlReceives posts the receives of the control connection; call it before connecting.
func (e *endpoint) postControlReceives() error {
	for i := range controlDepth {
		if err := e.postControlReceive(i); err != nil {
			return err
		}
	}
	return nil
}

func (e *endpoint) postControlReceive(i int) error {
	return e.control.qp.Receive(requestContext(kindControlRecv, i, 0), []nd.SGE{e.controlMR.SGE(i*maxMessage, maxMessage)})
}

// tell sends a control message.
func (e *endpoint) tell(ctx context.Context, m *message) error {
	b, err := m.encode()
	if err != nil {
		return err
	}
	for e.sending {
		if err := e.wait(ctx, nil); err != nil {
			return err
		}
	}
	at := controlDepth * maxMessage
	copy(e.controlMem[at:], b)
	e.sending = true
	return e.control.qp.Send(requestContext(kindControlSend, 0, 0), []nd.SGE{e.controlMR.SGE(at, len(b))}, 0)
}

// hear waits for the next control message and checks that it is of this kind.
func (e *endpoint) hear(ctx context.Context, kind string) (*message, error) {
	for len(e.inbox) == 0 {
		if err := e.wait(ctx, nil); err != nil {
			return nil, err
		}
	}
	return e.take(kind)
}

// take returns the oldest message received.
func (e *endpoint) take(kind string) (*message, error) {
	b := e.inbox[0]
	e.inbox = e.inbox[1:]
	m, err := decodeMessage(b)
	if err != nil {
		return nil, err
	}
	return m, m.want(kind)
}

// wait sleeps until there are results and passes those of the data to each.
func (e *endpoint) wait(ctx context.Context, each func(*nd.Result) error) error {
	if e.broken != nil {
		return e.broken
	}
	n, err := e.cq.WaitResults(ctx, e.results[:])
	if err != nil {
		return err
	}
	return e.handle(n, each)
}

// poll looks for results without sleeping, and returns how many there were.
func (e *endpoint) poll(ctx context.Context, each func(*nd.Result) error) (int, error) {
	if e.broken != nil {
		return 0, e.broken
	}
	n, err := e.cq.GetResults(e.results[:])
	if err != nil {
		return 0, err
	}
	if e.polls++; e.polls&0x3ff == 0 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
	return n, e.handle(n, each)
}

// handle sorts results: control messages into the inbox, the rest to each.
func (e *endpoint) handle(n int, each func(*nd.Result) error) error {
	for i := range e.results[:n] {
		r := &e.results[i]
		if r.Status != nd.StatusSuccess {
			if e.broken = e.failed(r); len(e.inbox) > 0 {
				return nil // what the peer said before comes first
			}
			return e.broken
		}
		switch kind, at, _ := splitContext(r.RequestContext); kind {
		case kindControlSend:
			e.sending = false
		case kindProbe:
			e.probe.Answered()
		case kindControlRecv:
			if len(e.inbox) == controlDepth {
				return errors.New("the peer sends control messages out of sequence")
			}
			e.inbox = append(e.inbox, append([]byte(nil), e.controlMem[at*maxMessage:at*maxMessage+int(r.BytesTransferred)]...))
			if err := e.postControlReceive(at); err != nil {
				return err
			}
		default:
			if each == nil {
				continue // a receive or request of the previous round
			}
			if err := each(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *endpoint) failed(r *nd.Result) error {
	peer := "the peer"
	if a, err := e.control.connector.GetPeerAddress(); err == nil {
		peer = a.String()
	}
	if r.Status == nd.StatusCanceled {
		return &nd.Error{Status: nd.StatusConnectionAborted, Detail: "the connection with " + peer + " ended"}
	}
	if kind, _, _ := splitContext(r.RequestContext); kind == kindProbe {
		return &nd.Error{Status: r.Status, Detail: session.Gone + ": " + peer}
	}
	return &nd.Error{Status: r.Status, Detail: fmt.Sprintf("%v in the connection with %s", r.RequestType, peer)}
}

// disconnect ends the connections cleanly.
func (e *endpoint) disconnect(ctx context.Context) error {
	var errs []error
	for _, l := range append(e.data, e.control) {
		if err := l.connector.Disconnect(ctx); err != nil && !errors.Is(err, nd.ErrConnectionInvalid) {
			errs = append(errs, err) // ErrConnectionInvalid: the peer was faster
		}
	}
	return errors.Join(errs...)
}

// awaitDisconnect waits for the client to end the connections: it has the last word, whose delivery a
// disconnect by this side could cut off.
func (e *endpoint) awaitDisconnect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	return e.control.connector.NotifyDisconnect(ctx)
}

// close ends the connections and releases everything.
func (e *endpoint) close() error {
	var errs []error
	e.probe.Stop()
	for _, l := range e.data {
		errs = append(errs, l.close())
	}
	if e.control != nil {
		errs = append(errs, e.control.close())
	}
	for _, mr := range []*nd.MemoryRegion{e.mr, e.controlMR} {
		if mr != nil {
			errs = append(errs, mr.Close())
		}
	}
	if e.cq != nil {
		errs = append(errs, e.cq.Close())
	}
	return errors.Join(errs...)
}
