package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
)

// look is the polling interval for a state that somebody waits for.
const look = 20 * time.Millisecond

// startInBackground starts the driver as a separate process, which outlives this one, and waits until it
// is up.
func startInBackground(s *session, cfg config.Config) error {
	cfg, err := cfg.Complete()
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := openDriverLog(cfg.State)
	if err != nil {
		return fmt.Errorf("log of the driver: %w", err)
	}
	defer log.Close()
	c := exec.Command(exe, inForeground(s.env.Args)...)
	c.Stdout, c.Stderr, c.SysProcAttr = log.file, log.file, detached()
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case <-s.ctx.Done():
			_ = c.Process.Signal(syscall.SIGTERM)
			<-ended
			return s.ctx.Err()
		case <-ended:
			if log.full {
				s.env.Errorf("the driver ended, status %d, and could not say why: log %s", c.ProcessState.ExitCode(), log)
			}
			_, _ = s.env.Stderr.Write(log.said())
			return silentError{max(1, c.ProcessState.ExitCode())}
		case <-time.After(look):
		}
		said := log.said()
		if !isUp(said) && !(log.full && serves(s.ctx, cfg.Socket, c.Process.Pid)) {
			continue
		}
		_, _ = s.env.Stdout.Write(said)
		fmt.Fprintf(s.env.Stdout, "running      process %d, log %s; softvpi down stops it\n", c.Process.Pid, log)
		return nil
	}
}

// serves reports whether a driver with this process ID answers.
func serves(ctx context.Context, socket string, pid int) bool {
	at, err := driver.NewAdmin(socket).Process(ctx)
	return err == nil && at == pid
}

// isUp reports whether a driver has printed that it is up: see announce.
func isUp(said []byte) bool {
	for line := range bytes.Lines(said) {
		if bytes.HasPrefix(line, []byte(listening)) || bytes.HasPrefix(line, []byte(noAttaching)) {
			return true
		}
	}
	return false
}

// inForeground returns the arguments without --background.
func inForeground(args []string) (rest []string) {
	for _, a := range args {
		if a != "--background" && !strings.HasPrefix(a, "--background=") {
			rest = append(rest, a)
		}
	}
	return rest
}

// driverLog is the output of a driver in the background.
type driverLog struct {
	file  *os.File
	begin int64 // where this driver's part begins
	full  bool  // there is no room for what a driver prints when it starts
}

func (l *driverLog) String() string {
	if l.full {
		return l.file.Name() + " (nothing can be written there: the disk is full)"
	}
	return l.file.Name()
}

// mostLog is how many bytes a log may have before the next driver starts a new one; the old one is kept as
// driver.log.1.
const mostLog = 1 << 20

// roomForStart is more bytes than a driver prints when it starts.
const roomForStart = 16 << 10

// openDriverLog opens the log in the state directory, or a temporary file if that is not writable. The
// temporary file is used even if there is no room for it either.
func openDriverLog(state string) (*driverLog, error) {
	name := filepath.Join(state, "driver.log")
	if i, err := os.Stat(name); err == nil && i.Size() > mostLog {
		_ = os.Rename(name, name+".1")
	}
	if err := os.MkdirAll(state, 0o700); err == nil && hasRoom(state) {
		if f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err == nil {
			return beginLog(f, false)
		}
	}
	f, err := os.CreateTemp("", "softvpi-driver-*.log")
	if err != nil {
		return nil, err
	}
	return beginLog(f, !hasRoom(filepath.Dir(f.Name())))
}

// hasRoom reports whether a directory's disk has room for what a driver prints when it starts.
func hasRoom(dir string) bool {
	f, err := os.CreateTemp(dir, "room-*")
	if err != nil {
		return false
	}
	defer os.Remove(f.Name())
	defer f.Close()
	_, err = f.Write(make([]byte, roomForStart))
	return err == nil
}

// beginLog makes a driver's part begin at the end of the file.
func beginLog(f *os.File, full bool) (*driverLog, error) {
	i, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &driverLog{file: f, begin: i.Size(), full: full}, nil
}

// said returns what the driver has printed.
func (l *driverLog) said() []byte {
	b, _ := io.ReadAll(io.NewSectionReader(l.file, l.begin, 1<<62))
	return b
}

func (l *driverLog) Close() error { return l.file.Close() }

// waitCmd waits for a driver.
type waitCmd struct {
	socketFlag `embed:""`
	Timeout    time.Duration `default:"60s" help:"How long to wait at most, such as 10s (default ${default}); after that the status is 1."`
	Active     bool          `help:"Also wait until the InfiniBand ports of all enabled adapters are Active."`
}

func (c waitCmd) Run(s *session) error {
	ctx, stop := context.WithTimeout(s.ctx, c.Timeout)
	defer stop()
	for {
		st, err := c.admin().Status(s.ctx)
		switch {
		case err == nil:
			down := inactive(st)
			if !c.Active || down == "" {
				return nil
			}
			err = errors.New(down)
		case errors.Is(err, api.ErrNotAllowed):
			return err
		}
		select {
		case <-ctx.Done():
			if s.ctx.Err() != nil {
				return s.ctx.Err()
			}
			return fmt.Errorf("after %v: %w", c.Timeout, err)
		case <-time.After(look):
		}
	}
}

// inactive describes an InfiniBand port that is enabled but not Active; empty: there is none.
func inactive(st *driver.Status) string {
	for i := range st.Adapters {
		a := &st.Adapters[i]
		if p := a.InfiniBand; p != nil && a.Enabled && p.State != "Active" {
			return fmt.Sprintf("the port of %s is %s", a.Name, p.State)
		}
	}
	return ""
}

// downCmd stops the driver.
type downCmd struct {
	socketFlag `embed:""`
	Timeout    time.Duration `default:"60s" help:"How long to wait at most until it has ended (default ${default}); after that the status is 1."`
}

func (c downCmd) Run(s *session) error {
	pid, err := c.admin().Process(s.ctx)
	if err != nil {
		return err
	}
	p, err := watch(pid)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.stop(); err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(s.ctx, c.Timeout)
	defer cancel()
	for !p.ended() {
		select {
		case <-ctx.Done():
			if s.ctx.Err() != nil {
				return s.ctx.Err()
			}
			return fmt.Errorf("the driver, process %d, has not ended after %v", pid, c.Timeout)
		case <-time.After(look):
		}
	}
	return nil
}
