package ndping

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/nd"
)

// Main runs the program.
func (p Program) Main(ctx context.Context, env tool.Env) int {
	o, status, done := p.parse(env)
	if done {
		return status
	}
	out := env.Stdout
	if o.log != "" {
		f, err := os.Create(o.log)
		if err != nil {
			return env.Fail(err)
		}
		defer f.Close()
		out = io.MultiWriter(env.Stdout, f)
	}
	r := &run{program: p, options: o, out: out}
	return env.End(ctx, r.run(ctx))
}

// run is one run of a program.
type run struct {
	program Program
	options
	out  io.Writer
	conn *session.Connection
	peer hello

	received, completed int // results so far
}

// The layout of the memory: what the peer sends or writes, then what is sent.
const (
	inAt  = 0
	outAt = maxSize
)

// Request contexts.
const (
	receive = iota + 1
	request
)

func (r *run) run(ctx context.Context) (err error) {
	var s *session.Session
	if r.server {
		s, err = session.Serve(ctx, r.mode, r.at.Addr())
	} else {
		s, err = session.Dial(ctx, r.mode, r.at)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if r.server {
		err = r.accept(ctx, s)
	} else {
		err = r.connect(ctx, s)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.conn.Close()) }()
	if r.server {
		err = r.serve(ctx)
	} else {
		err = r.client(ctx)
	}
	return errors.Join(err, r.conn.Disconnect(context.WithoutCancel(ctx)))
}

func (r *run) config() session.Config {
	return session.Config{Depth: r.pipeline + 2, SGE: r.sge, Memory: 2 * maxSize, Hello: r.hello,
		Prepare: func(c *session.Connection) error {
			r.conn = c
			for range r.pipeline + 1 {
				if err := r.postReceive(); err != nil {
					return err
				}
			}
			return nil
		}}
}

func (r *run) accept(ctx context.Context, s *session.Session) (err error) {
	l, err := s.Listen(r.at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	fmt.Fprintf(r.out, "%s: serving at %v, %s (%s)\n", r.program.Name(), r.at, s.Name(), s.Mode())
	for {
		q, err := s.Request(ctx, l)
		if err != nil {
			return err
		}
		private, err := q.GetPrivateData()
		if err == nil {
			r.peer, err = r.program.decode(private)
		}
		if err != nil {
			reason := err.Error()
			_ = q.Reject([]byte(reason[:min(len(reason), nd.MaxCalleeData)])) // a client that has gone needs no answer
			_ = q.Close()
			continue
		}
		_, err = s.Accept(ctx, q, r.config())
		return err
	}
}

// hello returns this side's introduction, once its memory exists.
func (r *run) hello(c *session.Connection) []byte {
	return hello{r.program, c.MR.Address() + inAt, c.MR.GetRemoteToken(), maxSize}.encode()
}

func (r *run) connect(ctx context.Context, s *session.Session) error {
	c, err := s.Dial(ctx, r.at, r.config())
	if err != nil {
		return err
	}
	private, err := c.Connector.GetPrivateData()
	if err == nil {
		r.peer, err = r.program.decode(private)
	}
	if err != nil {
		return errors.Join(err, c.Close())
	}
	fmt.Fprintf(r.out, "%s: %v to %v, %s (%s)\n", r.program.Name(), s.Local, r.at, s.Name(), s.Mode())
	return nil
}

// iterations returns how often a size is sent: both sides know it.
func iterations(size int) int { return min(max(32<<20/size, 32), 1000) }

// client runs all sizes and prints a line for each.
func (r *run) client(ctx context.Context) error {
	fmt.Fprintf(r.out, "%9s %11s %14s %16s\n", "bytes", "iterations", "latency [us]", "bytes/s")
	for size := 1; size <= maxSize; size *= 2 {
		n := iterations(size)
		start := time.Now()
		if err := r.clientSize(ctx, size, n); err != nil {
			return fmt.Errorf("%d bytes: %w", size, err)
		}
		took := time.Since(start)
		each := took / time.Duration(n)
		if r.program == pingPong || r.program == rpingPong {
			each /= 2
		}
		fmt.Fprintf(r.out, "%9d %11d %14.2f %16.0f\n", size, n, float64(each)/1e3, float64(size)/each.Seconds())
	}
	return nil
}

func (r *run) clientSize(ctx context.Context, size, n int) error {
	switch r.program {
	case ping:
		if err := r.pipelined(ctx, n, func() error { return r.conn.QP.Send(request, r.entries(outAt, size), 0) }); err != nil {
			return err
		}
		return r.awaitReceives(ctx, 1) // the server has received all
	case rping:
		return r.pipelined(ctx, n, func() error {
			if r.read {
				return r.conn.QP.Read(request, r.entries(outAt, size), r.peer.address, r.peer.token, 0)
			}
			return r.conn.QP.Write(request, r.entries(outAt, size), r.peer.address, r.peer.token, 0)
		})
	}
	for i := 1; i <= n; i++ {
		if err := r.send(ctx, size, i); err != nil {
			return err
		}
		if err := r.awaitPing(ctx, size, i); err != nil {
			return err
		}
	}
	return nil
}

// serve answers the client in all sizes.
func (r *run) serve(ctx context.Context) error {
	if r.program == rping { // the adapter answers
		return r.conn.Connector.NotifyDisconnect(ctx)
	}
	for size := 1; size <= maxSize; size *= 2 {
		answered, err := r.serveSize(ctx, size)
		if answered && size == maxSize && errors.Is(err, session.ErrEnded) {
			return nil // the client has the last answer and left before its acknowledgement was seen
		}
		if err != nil {
			return fmt.Errorf("%d bytes: %w", size, err)
		}
	}
	// The client ends the connection when it has the last answer.
	return r.conn.Connector.NotifyDisconnect(ctx)
}

// serveSize answers the client's pings of one size. answered reports that all have arrived and the last
// answer is being sent.
func (r *run) serveSize(ctx context.Context, size int) (answered bool, err error) {
	n := iterations(size)
	if r.program == ping {
		if err := r.awaitReceives(ctx, n); err != nil {
			return false, err
		}
		return true, r.pipelined(ctx, 1, func() error { return r.conn.QP.Send(request, nil, 0) })
	}
	for i := 1; i <= n; i++ {
		if err := r.awaitPing(ctx, size, i); err != nil {
			return false, err
		}
		if err := r.send(ctx, size, i); err != nil {
			return i == n, err
		}
	}
	return true, nil
}

// entries splits size bytes from offset over the scatter/gather entries.
func (r *run) entries(offset, size int) []nd.SGE {
	list := make([]nd.SGE, 0, r.sge)
	for i := range r.sge {
		from, to := size*i/r.sge, size*(i+1)/r.sge
		if to > from {
			list = append(list, r.conn.MR.SGE(offset+from, to-from))
		}
	}
	return list
}

func (r *run) postReceive() error {
	return r.conn.QP.Receive(receive, r.entries(inAt, maxSize))
}

// next takes one result and counts it.
func (r *run) next(ctx context.Context) error {
	wait := r.conn.Poll
	if r.blocking {
		wait = r.conn.Next
	}
	x, err := wait(ctx)
	if err != nil {
		return err
	}
	r.count(x)
	if x.RequestContext == receive {
		return r.postReceive()
	}
	return nil
}

func (r *run) count(x nd.Result) {
	if x.RequestContext == receive {
		r.received++
	} else {
		r.completed++
	}
}

// pipelined posts n requests, up to the pipeline's depth at a time, and waits for all of them.
func (r *run) pipelined(ctx context.Context, n int, post func() error) error {
	r.completed = 0
	for posted := 0; r.completed < n; {
		for posted < n && posted-r.completed < r.pipeline {
			if err := post(); err != nil {
				return err
			}
			posted++
		}
		if err := r.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitReceives waits for n messages.
func (r *run) awaitReceives(ctx context.Context, n int) error {
	for r.received < n {
		if err := r.next(ctx); err != nil {
			return err
		}
	}
	r.received -= n
	return nil
}

// send sends or writes ping number i to the peer and waits until that has completed.
func (r *run) send(ctx context.Context, size, i int) error {
	r.conn.Memory[outAt+size-1] = byte(i)
	return r.pipelined(ctx, 1, func() error {
		if r.program == pingPong {
			return r.conn.QP.Send(request, r.entries(outAt, size), 0)
		}
		return r.conn.QP.Write(request, r.entries(outAt, size), r.peer.address, r.peer.token, 0)
	})
}

// awaitPing waits for the peer's ping number i: a message, or its number in the last byte of the memory,
// which a write fills last.
func (r *run) awaitPing(ctx context.Context, size, i int) error {
	if r.program == pingPong {
		return r.awaitReceives(ctx, 1)
	}
	last := inAt + size - 1
	word := (*uint32)(unsafe.Pointer(&r.conn.Memory[last&^3]))
	for byte(atomic.LoadUint32(word)>>(8*(last&3))) != byte(i) {
		x, n, err := r.conn.Look(ctx)
		if err != nil {
			return err
		}
		if n > 0 {
			r.count(x)
		}
	}
	return nil
}
