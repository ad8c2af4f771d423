// Package program is what the programs for Kubernetes have in common: options that say where the driver of the node is and what pods get
// of it, and how they start and end.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/softvpi/softvpi/internal/os/paths"
)

// Options are those that each of the programs has.
type Options struct {
	Socket    string        // of the driver
	CDI       string        // directory of specifications
	Libraries string        // directory of the C libraries on the node
	Interval  time.Duration // between two looks at the driver
	Manual    bool          // print the manual page, and do nothing else
	Log       *slog.Logger
}

const (
	leastInterval = 10 * time.Millisecond
	mostInterval  = time.Hour
)

// Flags returns a table with these options, to which a program adds its own.
func (o *Options) Flags(program string) *flag.FlagSet {
	f := flag.NewFlagSet(program, flag.ContinueOnError)
	f.StringVar(&o.Socket, "socket", paths.Socket(), "`path` of the driver's socket, which is the same outside of this container")
	f.StringVar(&o.CDI, "cdi", "/var/run/cdi", "`directory` for CDI specifications")
	f.StringVar(&o.Libraries, "libraries", "/usr/lib/softvpi", "`directory` of the C libraries on the node")
	f.DurationVar(&o.Interval, "interval", 2*time.Second, "`time` between two looks at the driver")
	f.BoolVar(&o.Manual, "man", false, "print the manual page, for man -l -, and do nothing else")
	return f
}

// Parse parses a command line by a table that Flags began. Options whose value is a path or a directory have an absolute one. What is
// wrong is in the error, which nothing prints before.
func (o *Options) Parse(f *flag.FlagSet, args []string) error {
	to := f.Output()
	f.SetOutput(io.Discard)
	err := f.Parse(args)
	f.SetOutput(to)
	if errors.Is(err, flag.ErrHelp) {
		f.Usage()
	}
	if err != nil {
		return err
	}
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	switch {
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.Interval < leastInterval || o.Interval > mostInterval:
		return fmt.Errorf("-interval is %v; allowed: 10ms to 1h", o.Interval)
	}
	f.VisitAll(func(x *flag.Flag) {
		if kind, _ := flag.UnquoteUsage(x); err == nil && (kind == "path" || kind == "directory") && !filepath.IsAbs(x.Value.String()) {
			err = fmt.Errorf("-%s is %q; allowed: an absolute path", x.Name, x.Value)
		}
	})
	return err
}

// Main runs a program until it ends or a signal ends it, and returns its exit status: 2 if parse finds the command line wrong, 1 if what
// parse returns fails.
func Main(program string, parse func(args []string) (work func(context.Context) error, err error)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	work, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, program+":", err)
		return 2
	}
	if err := work(ctx); err != nil {
		fmt.Fprintln(os.Stderr, program+":", err)
		return 1
	}
	return 0
}
