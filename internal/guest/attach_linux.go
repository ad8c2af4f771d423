package guest

import (
	"context"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/remote"
	"github.com/softvpi/softvpi/internal/ipc/server"
)

// again is how long a machine waits before it looks for its host once more.
const again = time.Second

// Attach offers programs a driver's socket, behind which is the host's driver, until ctx ends. While the host's side is not there nobody
// can attach; who has attached is told that the device is gone when it goes, and may attach again when it comes back.
func Attach(ctx context.Context, c AttachConfig) error {
	waiting := false
	for ctx.Err() == nil {
		s, line, err := dial(ctx, c.Host)
		var a *remote.Agent
		if err == nil {
			a, err = remote.Connect(ctx, s, line, c.Log)
		}
		if err == nil {
			waiting = false
			if err := c.serve(ctx, a); err != nil {
				return err
			}
		} else if !waiting && ctx.Err() == nil {
			waiting = true
			c.Log.Warn("the host's side is not there, and is waited for", "host", c.Host, "cause", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
	return nil
}

// serve lets programs attach until the stream ends.
func (c *AttachConfig) serve(ctx context.Context, a *remote.Agent) error {
	defer a.Close()
	s, err := server.New(a, server.Config{
		Driver: c.Driver, Log: c.Log, Audience: c.Audience, Path: command.MemoryProcessVM, NoDirect: true,
	})
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := listenUnix(c.Socket, c.Audience)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	c.Log.Info("programs can attach", "socket", c.Socket, "host", c.Host)
	if c.Attached != nil {
		c.Attached()
	}
	select {
	case <-ctx.Done():
	case <-a.Ended():
		c.Log.Warn("the stream to the host has ended", "host", c.Host, "cause", a.Err())
	}
	cancel()
	return <-served
}
