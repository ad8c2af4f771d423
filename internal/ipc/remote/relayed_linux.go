package remote

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/reach"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

// mostChannels is how many channels a program has: each takes a descriptor.
const mostChannels = 64

// relayed is one program of an agent's, attached to the driver.
type relayed struct {
	r      *relay
	number uint32
	name   string
	ctx    context.Context
	cancel context.CancelCauseFunc

	client  *client.Client
	copies  atomic.Pointer[reach.Forwarder]
	channel command.Handle // of the completions of all CQs
	bells   *os.File       // its messages
	ready   atomic.Bool    // the agent may send

	handling sync.Mutex // held while a message is handled
	over     bool       // none is any more

	mu       sync.Mutex
	told     int // arenas of which the agent knows
	cqs      map[command.Handle]*ring.CQ
	queues   map[queueName]*queue
	numbers  map[uint32]command.Handle         // QPs by their numbers
	shared   map[command.Handle]command.Handle // SRQs of QPs
	within   map[command.Handle]command.Handle // CQs of SRQs that have one
	busy     map[queueName]*queue              // send rings with entries that were not given back
	hurry    chan struct{}                     // holds a token when there are some
	files    map[command.Handle]*os.File
	channels int
	requests map[uint64]context.CancelFunc
	work     sync.WaitGroup
}

// queueName names a ring of requests.
type queueName struct {
	of   command.Handle
	side side
}

func newRelayed(r *relay, number uint32, name string) *relayed {
	p := &relayed{r: r, number: number, name: name, cqs: map[command.Handle]*ring.CQ{}, queues: map[queueName]*queue{},
		numbers: map[uint32]command.Handle{}, shared: map[command.Handle]command.Handle{}, within: map[command.Handle]command.Handle{},
		busy:  map[queueName]*queue{},
		hurry: make(chan struct{}, 1), files: map[command.Handle]*os.File{}, requests: map[uint64]context.CancelFunc{}}
	p.ctx, p.cancel = context.WithCancelCause(r.ctx)
	return p
}

// end ends the program, which the agent is told with the reason; nil: it knows.
func (p *relayed) end(why error) {
	if why == nil {
		why = context.Canceled
	}
	p.cancel(why)
}

func (p *relayed) send(k kind, parts ...[]byte) {
	if err := p.r.out.send(k, p.number, parts...); err != nil {
		p.end(nil) // there is nobody to be told
	}
}

// run attaches, and serves the program until it is ended.
func (p *relayed) run() {
	defer p.r.forget(p)
	if err := p.attach(); err != nil {
		p.r.log.Warn("a program of an agent's does not attach", "program", p.name, "cause", err)
		p.send(closing, proto.EncodeError(err))
		return
	}
	p.r.log.Info("a program of an agent's has attached", "program", p.name)
	p.ready.Store(true)
	p.mu.Lock()
	p.tellArenas()
	p.mu.Unlock()
	p.send(open)
	p.work.Go(p.readEvents)
	p.work.Go(p.readBells)
	p.work.Go(p.watchSends)
	<-p.ctx.Done()
	if why := context.Cause(p.ctx); why != context.Canceled {
		p.r.log.Warn("a program of an agent's is ended", "program", p.name, "cause", why)
		p.send(closing, proto.EncodeError(why))
	}
	p.finish()
	p.bells.Close()
	p.mu.Lock()
	for _, f := range p.files {
		f.Close()
	}
	p.mu.Unlock()
	_ = p.client.Close()
	p.work.Wait()
	p.r.log.Info("a program of an agent's has detached", "program", p.name)
}

// finish waits until no message is handled any more.
func (p *relayed) finish() {
	p.r.forget(p)
	p.handling.Lock()
	defer p.handling.Unlock()
	p.over = true
}

// attach attaches to the driver, and makes the channel of completions.
func (p *relayed) attach() error {
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second)
	defer cancel()
	c, err := p.r.dial(ctx, client.Options{Name: "remote: " + p.name, Path: command.MemoryCopier, NoDirect: true, Copier: p.copier})
	if err != nil {
		return err
	}
	if p.channel, p.bells, err = c.OpenChannel(ctx, command.CreateChannel{Kind: command.Completions}); err != nil {
		_ = c.Close()
		return err
	}
	p.client = c
	return nil
}

// copier hands the agent what the driver wants of the program's memory.
func (p *relayed) copier(mem []byte, stop *atomic.Bool, finished func()) {
	f := reach.NewForwarder(mem, finished)
	p.copies.Store(f)
	f.Run(stop, func(index uint32, t memory.Transfer) {
		h := copyingHead{Index: index, Kind: uint8(t.Kind), Addr: t.Addr, Compare: t.Compare, Swap: t.Swap}
		if t.Last {
			h.Last = 1
		}
		if t.Kind == memory.CopyRead {
			h.Length, t.Data = uint32(len(t.Data)), nil
		}
		p.send(copying, proto.Encode(h), t.Data)
	})
}

// message handles one of the program's. Its error ends the program.
func (p *relayed) message(m message) error {
	p.handling.Lock()
	defer p.handling.Unlock()
	if p.over {
		return nil
	}
	switch {
	case m.kind == closing:
		p.end(nil)
		return nil
	case m.kind == copied:
		q, data, err := head[copiedHead](m.body)
		f := p.copies.Load()
		if err != nil || f == nil {
			return err
		}
		return f.Done(q.Index, q.Reached != 0, q.Old, data)
	case !p.ready.Load():
		return errMessage
	case m.kind == posted:
		return p.posted(m.body)
	case m.kind == request:
		return p.request(m.body)
	case m.kind == cancel:
		id, err := whole[uint64](m.body)
		p.mu.Lock()
		defer p.mu.Unlock()
		if end := p.requests[id]; end != nil {
			end()
		}
		return err
	}
	return errMessage
}

// posted puts entries into the driver's ring.
func (p *relayed) posted(body []byte) error {
	h, entries, err := head[postedHead](body)
	if err != nil {
		return err
	}
	name := queueName{h.Queue, h.Side}
	p.mu.Lock()
	q := p.queues[name]
	if q == nil {
		p.mu.Unlock()
		return nil // it was destroyed just now
	}
	err = q.put(h.Start, h.Count, entries)
	if h.Side == sends && err == nil {
		p.busy[name] = q
		select {
		case p.hurry <- struct{}{}:
		default:
		}
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	p.client.Doorbell(h.Queue)
	return nil
}

// readEvents passes the program's events on.
func (p *relayed) readEvents() {
	out := make([]command.Event, proto.MaxPush)
	for {
		n, err := p.client.Events(p.ctx, out)
		if err != nil {
			p.end(err)
			return
		}
		p.send(events, proto.EncodeList(out[:n]))
	}
}

// readBells passes completions on, of the CQs that have some.
func (p *relayed) readBells() {
	var b [8]byte
	for {
		if _, err := io.ReadFull(p.bells, b[:]); err != nil {
			p.end(nil)
			return
		}
		p.drain(command.Handle(binary.LittleEndian.Uint32(b[:])))
	}
}

// drain passes the completions of a CQ on, and arms it for the next.
func (p *relayed) drain(h command.Handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass(h)
}

// pass is drain for who holds mu.
func (p *relayed) pass(h command.Handle) {
	q := p.cqs[h]
	if q == nil {
		return
	}
	var list [256]ring.CQE
	for armed := false; ; {
		n := q.Poll(list[:])
		if n == 0 && armed {
			break
		}
		if n == 0 {
			q.Arm(ring.ArmAny)
			armed = true
			continue
		}
		var b []byte
		for i := range list[:n] {
			p.progressOf(&list[i])
			b = appendCQE(b, &list[i])
		}
		for srq, cq := range p.within {
			if cq == h {
				p.progress(queueName{srq, receives})
			}
		}
		p.send(complete, proto.Encode(completeHead{CQ: h}), b)
	}
	if q.Flags()&ring.FlagError != 0 {
		delete(p.cqs, h)
		p.send(complete, proto.Encode(completeHead{CQ: h, Broken: 1}))
	}
}

// progressOf tells how far the rings are that a completion is of. The caller holds mu.
func (p *relayed) progressOf(e *ring.CQE) {
	qp, ok := p.numbers[e.QPN]
	if !ok {
		return
	}
	if e.Flags&ring.ReceiveSide == 0 {
		p.progress(queueName{qp, sends})
		return
	}
	p.progress(queueName{qp, receives})
	if srq := p.shared[qp]; srq != 0 {
		p.progress(queueName{srq, receives})
	}
}

// progress tells how far the driver has taken the entries of a ring. The caller holds mu.
func (p *relayed) progress(name queueName) {
	q := p.queues[name]
	if q == nil {
		return
	}
	index, news := q.progress()
	if news {
		p.send(taken, proto.Encode(takenBody{Queue: name.of, Side: name.side, Index: index}))
	}
	if index == q.next {
		delete(p.busy, name)
	}
}

// watchSends tells of requests that were carried out without a completion.
func (p *relayed) watchSends() {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for pause := time.Millisecond; ; {
		select {
		case <-p.ctx.Done():
			return
		case <-p.hurry:
			pause = time.Millisecond
			t.Reset(pause)
		case <-t.C:
			p.mu.Lock()
			for name := range p.busy {
				p.progress(name)
			}
			if len(p.busy) > 0 {
				pause = min(2*pause, 20*time.Millisecond)
				t.Reset(pause)
			}
			p.mu.Unlock()
		}
	}
}

// tellArenas tells of arenas that the agent does not know. The caller holds mu.
func (p *relayed) tellArenas() {
	list := p.client.Arenas()
	for ; p.told < len(list); p.told++ {
		p.send(arena, proto.Encode(proto.ArenaBody{ID: uint32(p.told), Size: uint64(len(list[p.told]))}))
	}
}
