// Package ndcat copies its standard input to another ndcat's standard output over a NetworkDirect
// connection, in both directions at once.
package ndcat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/nd"
)

const (
	defaultPort = 54326
	// Number and maximum size of the messages in flight in each direction. A message without bytes means
	// the end of the sender's input.
	slots    = 16
	slotSize = 64 << 10
)

type options struct {
	listen bool
	at     netip.AddrPort
	mode   session.Mode
}

func parse(env tool.Env) (o options, status int, done bool) {
	f := tool.NewFlags(env, fmt.Sprintf("usage: %[1]s -s ADDRESS[:PORT]    wait for the other side\n       %[1]s ADDRESS[:PORT]       connect to it    (port %[2]d)\n"+
		"Copies standard input to the other side's standard output, both ways.", env.Name, defaultPort))
	f.BoolVar(&o.listen, "s", false, "be the server: wait for the other side")
	o.mode.Flag(f)
	o.mode.LocalFlag(f, "L")
	if status, done = f.Parse(); done {
		return o, status, true
	}
	var err error
	if f.NArg() == 1 {
		o.at, err = tool.ParseEndpoint(f.Arg(0), defaultPort)
	} else {
		err = tool.Usagef("%d arguments; allowed: one, the server's ADDRESS[:PORT]", f.NArg())
	}
	if err == nil {
		err = o.mode.Check(o.listen, o.at.Addr())
	}
	if err != nil {
		return o, f.Refuse(err), true
	}
	return o, tool.Success, false
}

// Main runs ndcat.
func Main(ctx context.Context, env tool.Env) int {
	o, status, done := parse(env)
	if done {
		return status
	}
	return env.End(ctx, run(ctx, env, o))
}

// Request contexts: receives use the slot, sends the slot plus sendContext.
const sendContext = slots

func run(ctx context.Context, env tool.Env, o options) (err error) {
	s, c, err := open(ctx, env, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(), s.Close()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	free := make(chan int, slots)
	for i := range slots {
		free <- i
	}
	go func() {
		if err := feed(ctx, c, env.Stdin, free); err != nil {
			cancel(err)
		}
	}()
	if err := drain(ctx, c, env.Stdout, free, o.listen); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause // what ended the drain
		}
		return err
	}
	if o.listen {
		return nil // the client ends the connection
	}
	return c.Disconnect(ctx)
}

func open(ctx context.Context, env tool.Env, o options) (s *session.Session, c *session.Connection, err error) {
	if o.listen {
		s, err = session.Serve(ctx, o.mode, o.at.Addr())
	} else {
		s, err = session.Dial(ctx, o.mode, o.at)
	}
	if err != nil {
		return nil, nil, err
	}
	if o.listen {
		c, err = accept(ctx, env, s, o.at)
	} else {
		c, err = s.Dial(ctx, o.at, config())
	}
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, c, nil
}

func accept(ctx context.Context, env tool.Env, s *session.Session, at netip.AddrPort) (c *session.Connection, err error) {
	l, err := s.Listen(at)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	fmt.Fprintf(env.Stderr, "%s: waiting at %v, %s (%s)\n", env.Name, at, s.Name(), s.Mode())
	q, err := s.Request(ctx, l)
	if err != nil {
		return nil, err
	}
	return s.Accept(ctx, q, config())
}

func config() session.Config {
	return session.Config{Depth: slots + 1, Memory: 2 * slots * slotSize, Prepare: func(c *session.Connection) error {
		for i := range slots {
			if err := receive(c, i); err != nil {
				return err
			}
		}
		return nil
	}}
}

func receive(c *session.Connection, slot int) error {
	return c.QP.Receive(uint64(slot), []nd.SGE{c.MR.SGE(slot*slotSize, slotSize)})
}

// feed sends what in supplies, and at its end an empty message.
func feed(ctx context.Context, c *session.Connection, in io.Reader, free chan int) error {
	for {
		var slot int
		select {
		case slot = <-free:
		case <-ctx.Done():
			return nil
		}
		at := (slots + slot) * slotSize
		n, err := in.Read(c.Memory[at : at+slotSize])
		if n > 0 {
			if err := c.QP.Send(uint64(sendContext+slot), []nd.SGE{c.MR.SGE(at, n)}, 0); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return c.QP.Send(endContext, nil, 0)
		case err != nil:
			return fmt.Errorf("standard input: %w", err)
		case n == 0:
			free <- slot
		}
	}
}

const endContext = 2 * slots // of the empty message

// drain writes what arrives to out, and returns the slots of completed sends, until both sides have
// reported the end of their input. The client then ends the connection, which it does only when it has
// received the server's whole input.
func drain(ctx context.Context, c *session.Connection, out io.Writer, free chan<- int, server bool) error {
	ours, theirs := false, false
	for server || !ours || !theirs {
		r, err := c.Next(ctx)
		if server && theirs && errors.Is(err, session.ErrEnded) {
			return nil
		}
		if err != nil {
			return err
		}
		switch slot := int(r.RequestContext); {
		case slot == endContext:
			ours = true
		case slot >= sendContext:
			free <- slot - sendContext
		case r.BytesTransferred == 0:
			theirs = true
		default:
			if _, err := out.Write(c.Memory[slot*slotSize:][:r.BytesTransferred]); err != nil {
				return fmt.Errorf("standard output: %w", err)
			}
			if err := receive(c, slot); err != nil {
				return err
			}
		}
	}
	return nil
}
