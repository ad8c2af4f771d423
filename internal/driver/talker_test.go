package driver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/rdmanet"
	"github.com/softvpi/softvpi/verbs"
)

// talker is two attached programs, one at each of two adapters: the one sends bytes that follow from their place, the other sends them
// back, and all of them are compared. When an adapter is taken away from them they open it again and go on.
type talker struct {
	socket   string // of the one that answers
	asker    string // socket of the other
	from, to netip.Addr
	port     uint16
	rounds   atomic.Uint64 // messages that came back as they were sent
	again    atomic.Uint64 // connections that ended
	wrong    atomic.Pointer[error]
	last     atomic.Pointer[error] // by which a part ended
	cancel   context.CancelFunc
	done     chan struct{}
}

const message = 20_000

// talk starts a talker, which the end of the test ends, and returns when it has said something.
func talk(t *testing.T, socket string, from, to netip.Addr, port uint16) *talker {
	t.Helper()
	return talkAs(t, socket, socket, from, to, port)
}

// talkAs is talk with programs that attach at different sockets: the first is of the one that asks.
func talkAs(t *testing.T, asker, socket string, from, to netip.Addr, port uint16) *talker {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k := &talker{socket: socket, asker: asker, from: from, to: to, port: port, cancel: cancel, done: make(chan struct{})}
	echo := make(chan struct{})
	go func() { defer close(echo); k.keep(ctx, k.answer) }()
	go func() { defer close(k.done); k.keep(ctx, k.ask) }()
	t.Cleanup(func() { cancel(); <-echo; <-k.done })
	k.proceeds(t, 1)
	return k
}

// proceeds waits for so many further messages.
func (k *talker) proceeds(t *testing.T, n uint64) {
	t.Helper()
	defer func() {
		if err := k.last.Load(); t.Failed() && err != nil {
			t.Logf("from %v to %v, %d times again: %v", k.from, k.to, k.again.Load(), *err)
		}
	}()
	was := k.rounds.Load()
	await.Eventually(t, "messages that come back", func() bool { return k.rounds.Load() >= was+n })
	if err := k.wrong.Load(); err != nil {
		t.Fatal(*err)
	}
}

// keep does a part again whenever its connection has ended.
func (k *talker) keep(ctx context.Context, part func(context.Context) error) {
	for ctx.Err() == nil {
		if err := part(ctx); err != nil {
			k.last.Store(&err)
		}
		k.again.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// adapter opens an adapter as a program of its own.
func (k *talker) adapter(ctx context.Context, socket string, at netip.Addr, do func(*nd.Adapter) error) error {
	h, err := verbs.Open(ctx, verbs.Options{Mode: verbs.Attached, Socket: socket, Name: "talker"})
	if err != nil {
		return err
	}
	defer h.Close()
	a, err := nd.NewProvider(h).OpenAdapterAt(at)
	if err != nil {
		return err
	}
	defer a.Close()
	return do(a)
}

func (k *talker) answer(ctx context.Context) error {
	return k.adapter(ctx, k.socket, k.to, func(a *nd.Adapter) error {
		l, err := (&rdmanet.ListenConfig{Adapter: a}).Listen(ctx, netip.AddrPortFrom(k.to, k.port).String())
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { l.Close() })()
		defer l.Close()
		var all sync.WaitGroup
		defer all.Wait()
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			all.Go(func() { _ = k.speak(ctx, c, func() error { _, err := io.Copy(c, c); return err }) })
		}
	})
}

// speak does something with a connection, which ends with ctx.
func (k *talker) speak(ctx context.Context, c net.Conn, do func() error) error {
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()
	defer c.Close()
	return do()
}

// knock asks for a connection beside the talker's own, and gives it up at once.
func (k *talker) knock(ctx context.Context) error {
	return k.adapter(ctx, k.asker, k.from, func(a *nd.Adapter) error {
		c, err := (&rdmanet.Dialer{Adapter: a}).Dial(ctx, netip.AddrPortFrom(k.to, k.port).String())
		if err != nil {
			return err
		}
		return c.Close()
	})
}

func (k *talker) ask(ctx context.Context) error {
	return k.adapter(ctx, k.asker, k.from, func(a *nd.Adapter) error {
		some, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		c, err := (&rdmanet.Dialer{Adapter: a}).Dial(some, netip.AddrPortFrom(k.to, k.port).String())
		if err != nil {
			return err
		}
		return k.speak(ctx, c, func() error {
			out, in := make([]byte, message), make([]byte, message)
			for n := uint64(0); ctx.Err() == nil; n++ {
				for i := range out {
					out[i] = byte(uint64(i)*7 + n)
				}
				if _, err := c.Write(out); err != nil {
					return err
				}
				if _, err := io.ReadFull(c, in); err != nil {
					return err
				}
				if !bytes.Equal(in, out) {
					err := fmt.Errorf("message %d came back as another one", n)
					k.wrong.Store(&err)
					return err
				}
				k.rounds.Add(1)
			}
			return nil
		})
	})
}
