package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// Dial attaches to the driver for a program of an agent's.
type Dial func(ctx context.Context, o client.Options) (*client.Client, error)

// Relay serves the agent at the other end of a stream, until the stream ends or ctx does. It closes the stream.
func Relay(ctx context.Context, s io.ReadWriteCloser, dial Dial, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { s.Close() })()
	r := &relay{ctx: ctx, dial: dial, log: log, out: writer{w: s}, programs: map[uint32]*relayed{}}
	defer func() {
		cancel()
		s.Close()
		r.endAll()
	}()
	err := r.read(s)
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// relay is the driver's side of a stream.
type relay struct {
	ctx  context.Context
	dial Dial
	log  *slog.Logger
	out  writer

	mu       sync.Mutex
	programs map[uint32]*relayed
	ending   sync.WaitGroup
}

// greet finds an agent's greeting, behind whatever another one has left, and answers it.
func (r *relay) greet(in *bufio.Reader) error {
	var seen [len(magic)]byte
	for seen != magic {
		b, err := in.ReadByte()
		if err != nil {
			return err
		}
		copy(seen[:], seen[1:])
		seen[len(seen)-1] = b
	}
	rest := make([]byte, len(proto.Encode(greeting{}))-len(magic))
	if _, err := io.ReadFull(in, rest); err != nil {
		return err
	}
	g, err := proto.Decode[greeting](slices.Concat(magic[:], rest))
	if err != nil {
		return err
	}
	g.Doorbells, g.Protocol = uint32(device.Doorbells().Entries), protocol
	return r.out.send(hello, 0, proto.Encode(g))
}

// protocol is the version of the driver's protocol.
const protocol = uint32(proto.Major)<<16 | uint32(proto.Minor)

// read handles what the agent sends. What is no message ends the agent's programs, and a greeting is waited for.
func (r *relay) read(s io.Reader) error {
	in, buf := bufio.NewReaderSize(s, maxMessage), make([]byte, maxMessage)
	for {
		if err := r.greet(in); err != nil {
			return err
		}
		for {
			m, err := read(in, buf)
			if err == nil {
				err = r.message(m)
			}
			if errors.Is(err, errMessage) || errors.Is(err, proto.ErrFrame) {
				r.log.Warn("an agent's programs are ended", "cause", err)
				r.endAll()
				break
			}
			if err != nil {
				return err
			}
		}
	}
}

// endAll ends all programs, and waits until they are gone.
func (r *relay) endAll() {
	r.mu.Lock()
	list := slices.Collect(maps.Values(r.programs))
	r.mu.Unlock()
	for _, p := range list {
		p.end(nil)
	}
	r.ending.Wait()
}

func (r *relay) message(m message) error {
	if m.kind == open {
		return r.open(m)
	}
	if m.kind == hello && bytes.HasPrefix(m.body, magic[:]) {
		return fmt.Errorf("%w: another greeting", errMessage)
	}
	r.mu.Lock()
	p := r.programs[m.program]
	r.mu.Unlock()
	if p == nil {
		return nil // it has just been ended
	}
	err := p.message(m)
	if err != nil {
		p.end(command.Errorf(command.Invalid, "%v", err)) // a program breaks the rules: it alone is ended
	}
	return nil
}

// open attaches to the driver for a program.
func (r *relay) open(m message) error {
	q, err := whole[opening](m.body)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.programs[m.program] != nil:
		return fmt.Errorf("%w: program %d is there already", errMessage, m.program)
	case len(r.programs) >= 2*MaxPrograms: // some may be about to end
		return fmt.Errorf("%w: more than %d programs", errMessage, MaxPrograms)
	}
	p := newRelayed(r, m.program, proto.NameOf(q.Name))
	r.programs[m.program] = p
	r.ending.Go(p.run)
	return nil
}

func (r *relay) forget(p *relayed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.programs[p.number] == p {
		delete(r.programs, p.number)
	}
}
