package remote

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
)

// Agent provides the adapters of a driver that is at the other end of a stream. It is a server.Host.
type Agent struct {
	s   io.ReadWriteCloser
	in  *bufio.Reader
	out writer
	log *slog.Logger

	mu       sync.Mutex
	last     uint32
	programs map[uint32]*program
	err      error // why the stream has ended
	ended    chan struct{}
}

var _ server.Host = (*Agent)(nil)

// greetTime is how long a relay may take to answer a greeting.
const greetTime = 10 * time.Second

// Connect greets the relay at the other end of a stream, which it closes with the agent. A line may have carried another agent's bytes, as
// a port of virtio-serial has: what that has begun is filled up, and what was for it is passed over.
func Connect(ctx context.Context, s io.ReadWriteCloser, line bool, log *slog.Logger) (*Agent, error) {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.Close() })
	a := &Agent{s: s, in: bufio.NewReaderSize(s, maxMessage), out: writer{w: s}, log: log, programs: map[uint32]*program{},
		ended: make(chan struct{})}
	err := a.greet(line)
	if !stop() {
		err = fmt.Errorf("nobody answers: %w", context.Cause(ctx))
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("greeting the driver's side: %w", err)
	}
	go a.read()
	return a, nil
}

func (a *Agent) greet(line bool) error {
	g := greeting{Magic: magic, Protocol: protocol}
	_, _ = rand.Read(g.Nonce[:]) // never fails
	own := proto.Encode(g)
	if line {
		own = append(make([]byte, 2*maxMessage), own...)
	}
	wrote := make(chan error, 1)
	go func() { // the other side may first have to get rid of what it has for another agent
		_, err := a.s.Write(own)
		wrote <- err
	}()
	// The answer is the greeting with the nonce, in a message.
	want := slices.Concat(magic[:], g.Nonce[:])
	seen := make([]byte, len(want))
	for string(seen) != string(want) {
		b, err := a.in.ReadByte()
		if err != nil {
			return err
		}
		copy(seen, seen[1:])
		seen[len(seen)-1] = b
	}
	if err := <-wrote; err != nil {
		return err
	}
	rest := make([]byte, 8)
	if _, err := io.ReadFull(a.in, rest); err != nil {
		return err
	}
	g, err := proto.Decode[greeting](append(seen, rest...))
	if err != nil {
		return err
	}
	if g.Protocol != protocol || int(g.Doorbells) != device.Doorbells().Entries {
		return fmt.Errorf("%w: the driver's side has protocol %d.%d, this one %d.%d: both have to be of one version", errMessage,
			g.Protocol>>16, g.Protocol&0xffff, protocol>>16, protocol&0xffff)
	}
	return nil
}

// Doorbells implements server.Host.
func (a *Agent) Doorbells() int { return device.Doorbells().Entries }

// Zero implements server.Host: it is for the direct path, which there is none of.
func (a *Agent) Zero() uint64 { return 0 }

// Ended is closed when the stream has ended; Err then says why.
func (a *Agent) Ended() <-chan struct{} { return a.ended }

// Err returns why the stream has ended.
func (a *Agent) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Close ends the stream. The server that the agent is for is to be closed before.
func (a *Agent) Close() error {
	err := a.s.Close()
	<-a.ended
	return err
}

// errLost is what programs are told when the stream has ended.
var errLost = command.Errorf(command.Removed, "the stream to the driver has ended")

// read handles what the relay sends until the stream ends.
func (a *Agent) read() {
	buf := make([]byte, maxMessage)
	var err error
	for err == nil {
		var m message
		if m, err = read(a.in, buf); err == nil {
			err = a.message(m)
		}
	}
	a.mu.Lock()
	a.err = err
	list := slices.Collect(maps.Values(a.programs))
	a.mu.Unlock()
	close(a.ended)
	a.s.Close()
	for _, p := range list {
		p.end(errLost)
	}
}

func (a *Agent) message(m message) error {
	a.mu.Lock()
	p := a.programs[m.program]
	a.mu.Unlock()
	if p == nil {
		return nil // it has just ended
	}
	return p.message(m)
}

// NewClient implements server.Host.
func (a *Agent) NewClient(cfg device.ClientConfig) (server.Session, error) {
	p := newProgram(a, cfg)
	a.mu.Lock()
	if a.err != nil {
		a.mu.Unlock()
		return nil, errLost
	}
	if len(a.programs) >= MaxPrograms {
		a.mu.Unlock()
		return nil, command.Errorf(command.Exhausted, "too many programs by one stream: allowed: %d", MaxPrograms)
	}
	for a.last++; a.programs[a.last] != nil; a.last++ {
	}
	p.number = a.last
	a.programs[p.number] = p
	a.mu.Unlock()
	if err := p.open(); err != nil {
		_ = p.Close()
		var told *command.Error
		if !errors.As(err, &told) {
			err = command.Errorf(command.Removed, "%v", err)
		}
		return nil, err
	}
	return p, nil
}

func (a *Agent) forget(p *program) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.programs, p.number)
}
