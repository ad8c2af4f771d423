package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/remote"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/os/peer"
)

// Serve lets the programs of a machine attach to a virtual function until ctx ends. They are programs of this process to the
// driver, with the limits of the function.
func Serve(ctx context.Context, c ServeConfig) error {
	l, err := c.listen()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	if c.Listens != nil {
		c.Listens()
	}
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel()
	room := make(chan struct{}, MostStreams)
	for {
		s, err := l.accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			c.Log.Warn("a machine is not let in", "cause", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		select {
		case room <- struct{}{}:
		default:
			c.Log.Warn("a machine is turned away", "cause", fmt.Sprintf("there are %d streams already", MostStreams))
			s.Close()
			continue
		}
		c.Log.Info("a machine has come", "listen", c.Listen)
		streams.Go(func() {
			defer func() { <-room }()
			err := remote.Relay(ctx, s, c.dial, c.Log)
			c.Log.Info("a machine has gone", "listen", c.Listen, "cause", err)
		})
	}
}

func (c *ServeConfig) dial(ctx context.Context, o client.Options) (*client.Client, error) {
	return client.Dial(ctx, c.Socket, o)
}

// listen waits for machines.
func (c *ServeConfig) listen() (*listener, error) {
	if c.Listen.Kind == Vsock {
		return listenVsock(c.Listen)
	}
	l, err := listenUnix(c.Listen.Path, c.Admitted)
	if err != nil {
		return nil, err
	}
	return &listener{Closer: l, accept: func() (io.ReadWriteCloser, error) {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		p, err := peer.Of(conn)
		if err == nil {
			err = c.Admitted.Admits(p)
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}}, nil
}

// listenUnix opens a unix socket for an audience. One that was left behind is removed; one that answers is another's.
func listenUnix(path string, who peer.Audience) (*net.UnixListener, error) {
	if len(path) >= paths.MaxSocket {
		return nil, fmt.Errorf("socket %s: its path has %d bytes; allowed: at most %d", path, len(path), paths.MaxSocket-1)
	}
	if err := paths.Room(path); err != nil {
		return nil, err
	}
	if i, err := os.Lstat(path); err == nil {
		if i.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("socket %s: this path exists and is not a socket", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, fmt.Errorf("socket %s: somebody listens there", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, who.Mode()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
