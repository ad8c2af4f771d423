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

// output is the standard output of a command. It keeps the first error of a write, so that a command whose output went nowhere
// does not end as if somebody had it.
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

// failed is why not everything was written. A reader that wanted no more is no failure.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	return o.err
}

// status is that of a command which ended with s, once its output counts.
func (o *output) status(env tool.Env, s int) int {
	err := o.failed()
	if err == nil || s != tool.Success {
		return s
	}
	return env.Fail(err)
}

// asService is the context of a command that runs until it is told to end. Its end is orderly also where the terminal goes that it
// was started from, and it goes on where nobody reads its output any more. A shell's nohup is heeded.
func asService(ctx context.Context) (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	if signal.Ignored(syscall.SIGHUP) {
		return ctx, func() {}
	}
	return signal.NotifyContext(ctx, os.Signal(syscall.SIGHUP))
}
