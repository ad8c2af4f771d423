package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// output is the standard output of a command. It keeps the first write error, so that a command whose
// output was lost does not end successfully.
type output struct {
	to  io.Writer
	mu  sync.Mutex
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.to.Write(b)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// failed returns why not everything was written. A reader that closed the pipe is no failure.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	return o.err
}

// status returns the exit status of a command that ended with s, considering whether its output was
// written.
func (o *output) status(env tool.Env, s int) int {
	err := o.failed()
	if err == nil || s != tool.Success {
		return s
	}
	return env.Fail(err)
}

// asService returns the context of a command that runs until it is told to end. It ends cleanly also when
// its terminal is closed, and continues if nobody reads its output any more. A shell's nohup is respected.
func asService(ctx context.Context) (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	if signal.Ignored(syscall.SIGHUP) {
		return ctx, func() {}
	}
	return signal.NotifyContext(ctx, os.Signal(syscall.SIGHUP))
}
