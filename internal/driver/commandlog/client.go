package commandlog

import (
	"errors"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/device/handle"
	"github.com/softvpi/softvpi/internal/driver/lastwords"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
)

// Client is a program whose commands a Log records.
type Client struct {
	*device.Client
	log     *Log
	program string
	pid     int
	tenant  bool   // it has a virtual function
	vf      string // that function's name
	owner   int    // the adapter at whose port that is

	mu sync.Mutex
	// known holds the adapter of each object, by kind and index of its handle, as one more than the
	// adapter's index; 0: unknown.
	known [command.KindCM + 1][]uint8
}

// Client returns c with its commands recorded as those of a program.
func (l *Log) Client(c *device.Client, program string, pid int) *Client {
	t := &Client{Client: c, log: l, program: program, pid: pid}
	vf, owner, ok := c.Tenant()
	t.tenant, t.vf, t.owner = ok, vf, int(owner)
	return t
}

// unknownAdapter is the adapter of an object whose adapter is unknown.
const unknownAdapter = -1

// where returns the adapter of an object.
func (c *Client) where(h command.Handle) int {
	kind, i := handle.Kind(h), handle.Index(h)
	if kind == 0 || kind > command.KindCM {
		return unknownAdapter
	}
	c.mu.Lock()
	adapter := unknownAdapter
	if i < uint32(len(c.known[kind])) {
		adapter = int(c.known[kind][i]) - 1
	}
	c.mu.Unlock()
	if adapter != unknownAdapter {
		return adapter
	}
	if index, ok := c.Client.AdapterOf(h); ok {
		c.learn(h, int(index))
		return int(index)
	}
	return unknownAdapter
}

// learn records the adapter of an object; unknownAdapter: forget it.
func (c *Client) learn(h command.Handle, adapter int) {
	kind, i := handle.Kind(h), int(handle.Index(h))
	if kind == 0 || kind > command.KindCM || adapter >= 1<<8-1 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.known[kind]) <= i {
		c.known[kind] = append(c.known[kind], 0)
	}
	c.known[kind][i] = uint8(adapter + 1)
}

// Begin implements server.CommandLog.
func (c *Client) Begin(op proto.Opcode, body []byte) server.Begun {
	b := server.Begun{Op: op, Adapter: c.hosted(c.adapterOf(op, body)), Body: body, At: time.Now()}
	if b.Adapter >= 0 && b.Adapter < len(c.log.adapters) {
		b.Number = c.log.adapters[b.Adapter].begin(op, c.vf)
	}
	if c.log.Last != nil {
		b.Note = c.log.Last.Began(c.lastWords(b))
	}
	return b
}

// End implements server.CommandLog.
func (c *Client) End(b server.Begun, reply []byte, err error) {
	took := time.Since(b.At)
	if b.Number != 0 {
		c.log.adapters[b.Adapter].end(b.Number)
	}
	if c.log.Last != nil {
		w := c.lastWords(b)
		if w.Took, w.Failure = took, uint32(failure(err)); errors.Is(err, device.ErrWaits) {
			w.Failure = lastwords.Waits
		}
		c.log.Last.Ended(b.Note, w)
	}
	if errors.Is(err, device.ErrWaits) || errors.Is(err, proto.ErrFrame) {
		return // not carried out yet, or no command
	}
	if c.tenant && c.log.Tenant != nil {
		c.log.Tenant(c.vf, took, err)
	}
	adapter := b.Adapter
	if err == nil {
		adapter = c.hosted(c.changed(b, reply))
	}
	if adapter < 0 || adapter >= len(c.log.adapters) {
		return // not for an adapter
	}
	r := Record{Began: b.At, Took: took, Command: b.Op.String(), Program: c.program, PID: c.pid, Failure: failure(err)}
	c.log.adapters[adapter].add(b.Op, r)
	if c.log.Ended != nil {
		c.log.Ended(adapter, b.Op, r)
	}
	if r.Failure == command.Internal && c.log.Failed != nil {
		c.log.Failed(adapter, r)
	}
}

// hosted returns the adapter for what a program takes for one: the only one that a tenant sees is its virtual function.
func (c *Client) hosted(adapter int) int {
	if c.tenant && adapter >= 0 {
		return c.owner
	}
	return adapter
}

// changed records which adapters objects have after a command, and returns the adapter of the command.
func (c *Client) changed(b server.Begun, reply []byte) int {
	s, adapter := subjects[b.Op], b.Adapter
	if b.Op == proto.OpDestroy {
		c.learn(handleAt(b.Body, s.object), unknownAdapter) // another object may get its handle
	}
	if s.makes {
		made := handleAt(reply, 0)
		if c.learn(made, unknownAdapter); adapter == unknownAdapter {
			adapter = c.where(made)
		}
		c.learn(made, adapter)
	}
	if adapter == unknownAdapter {
		adapter = c.adapterOf(b.Op, b.Body) // an id that the command has bound
	}
	return adapter
}

// lastWords returns a command for the driver after this one.
func (c *Client) lastWords(b server.Begun) lastwords.Command {
	return lastwords.Command{Began: b.At, Opcode: uint16(b.Op), Adapter: b.Adapter, PID: c.pid, Program: c.program}
}

// failure returns why a command failed; 0: it did not.
func failure(err error) command.Code {
	if err == nil {
		return 0
	}
	var e *command.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return command.Internal
}
