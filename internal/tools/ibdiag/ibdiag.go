// Package ibdiag holds what the InfiniBand diagnostic tools have in common: their options, how ports are
// addressed, how the fabric is queried, and how attributes are printed. The formats are those of
// infiniband-diags, which scripts parse.
package ibdiag

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
)

// Failed is the exit status of a failed tool, as in infiniband-diags; 2 means wrong usage, as in all of
// our tools.
const Failed = 255

// failure ends a tool with a message on the standard output, as in infiniband-diags.
type failure struct{ Text string }

// Error implements error.
func (f *failure) Error() string { return f.Text }

// Failf returns a failure.
func Failf(format string, args ...any) error { return &failure{fmt.Sprintf(format, args...)} }

// Ended ends a tool with a particular exit status, without a message.
type Ended int

// Error implements error.
func (e Ended) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Tool is a diagnostic tool.
type Tool struct {
	Arguments string // in the usage text, after the options
	About     string // one paragraph for the usage text
	Examples  []string
	Options   []Option
	Without   string       // letters of the common options that the tool lacks
	Least     int          // minimum number of arguments other than options
	Most      int          // maximum of them; below 0: any number
	OneDash   bool         // long options have a single dash: -lw
	Offline   bool         // works without a fabric; Session.Port is nil
	Ready     func() error // checks the options before a fabric is accessed; nil: nothing to check
	Work      func(s *Session, args []string) error
}

// Session is one run of a tool.
type Session struct {
	Context  context.Context
	Env      tool.Env
	Out      *bufio.Writer // standard output; warnings flush it first
	Port     *umad.Port
	Kind     Kind // of the addresses in the arguments
	Timing   umad.Timing
	MKey     uint64
	SAKey    uint64
	SMLID    ib.LID // of --sm_port; 0: the port's
	ShowKeys bool
	Verbose  int
	Errors   bool // report answers with an error status, and missing answers
	Node     Names
	Serving  bool // the port answers other nodes; set by an option

	adapter     string
	portNum     int
	nameMapFile string
}

// Run runs a tool. The exit status is that of infiniband-diags, except 2 for wrong usage and 0 for --help.
func Run(ctx context.Context, env tool.Env, t Tool) int {
	s := &Session{Context: ctx, Env: env, Out: bufio.NewWriter(env.Stdout), Timing: umad.DefaultTiming}
	status := s.exit(s.run(t))
	if err := s.Out.Flush(); err != nil && status == tool.Success {
		return env.Fail(err)
	}
	return status
}

func (s *Session) run(t Tool) error {
	if err := s.configure(configPath()); err != nil && !errors.Is(err, os.ErrNotExist) { // the system-wide settings need not exist
		return tool.Usagef("%v", err)
	}
	args, err := s.parse(t)
	if err != nil {
		return err
	}
	if len(args) < t.Least {
		return tool.Usagef("%d arguments are missing; allowed: %s", t.Least-len(args), strings.TrimSpace(t.Arguments))
	}
	if t.Most >= 0 && len(args) > t.Most {
		return tool.Usagef("unexpected argument %q; allowed: %s", args[t.Most], orNone(strings.TrimSpace(t.Arguments)))
	}
	if s.nameMapFile != "" {
		if s.Node, err = readNames(s.nameMapFile); err != nil {
			return tool.Usagef("--node-name-map: %v", err)
		}
	}
	if t.Ready != nil {
		if err := t.Ready(); err != nil {
			return err
		}
	}
	if t.Offline {
		return t.Work(s, args)
	}
	if err := s.open(); err != nil {
		return err
	}
	defer func() {
		if s.Port != nil {
			s.Port.Close()
		}
	}()
	return t.Work(s, args)
}

// UsePort switches to another port of the adapter. The error is a *failure.
func (s *Session) UsePort(number int) error {
	if number == s.Port.Device().PortNum {
		return nil
	}
	s.close()
	s.portNum = number
	return s.open()
}

func orNone(arguments string) string {
	if arguments == "" {
		return "no arguments"
	}
	return arguments
}

// open opens the port selected by the options.
func (s *Session) open() error {
	o, err := umad.FromEnvironment()
	var p *umad.Port
	if err == nil {
		o.Serving = s.Serving
		o.Service.Adapter, o.Service.Port = s.adapter, s.portNum
		p, err = o.Open()
	}
	if err != nil {
		return Failf("Failed to open '%s' port '%d': %s", orAny(s.adapter), s.portNum, err)
	}
	d := p.Device()
	if (s.adapter != "" && s.adapter != d.Name) || (s.portNum != 0 && s.portNum != d.PortNum) {
		p.Close()
		return Failf("Failed to open '%s' port '%d': there is '%s' port '%d'", orAny(s.adapter), s.portNum, d.Name, d.PortNum)
	}
	s.Port = p
	return nil
}

func orAny(adapter string) string {
	if adapter == "" {
		return "(any)"
	}
	return adapter
}

// exit reports how a tool ended, and returns its exit status.
func (s *Session) exit(err error) int {
	var failure *failure
	var usage *tool.UsageError
	var ended Ended
	var help helpWanted
	switch {
	case err == nil:
		return tool.Success
	case errors.As(err, &help):
		s.Out.WriteString(string(help))
		return tool.Success
	case errors.As(err, &ended):
		return int(ended)
	case errors.As(err, &usage):
		s.Out.Flush()
		s.Env.Errorf("%s", oneLine(usage.Text))
		return tool.Usage
	case s.Context.Err() != nil:
		s.Out.Flush()
		s.Env.Errorf("stopped")
		return Failed
	case errors.As(err, &failure):
		fmt.Fprintf(s.Out, "%s: iberror: failed: %s\n", s.Env.Name, oneLine(failure.Text))
		return Failed
	}
	s.Out.Flush()
	s.Env.Errorf("%s", oneLine(err.Error()))
	return Failed
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }

// Printf prints to the standard output.
func (s *Session) Printf(format string, args ...any) { fmt.Fprintf(s.Out, format, args...) }

// Warnf prints a warning in the format of infiniband-diags; where is the name of the function that warns
// there.
func (s *Session) Warnf(where, format string, args ...any) {
	s.Out.Flush()
	fmt.Fprintf(s.Env.Stderr, "ibwarn: [%d] %s: "+format+"\n", append([]any{os.Getpid(), where}, args...)...)
}

// configPath returns the path of the settings for all tools.
func configPath() string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return "/etc/infiniband-diags/ibdiag.conf"
}

// milliseconds parses a timeout.
func milliseconds(text string) (time.Duration, error) {
	n, err := number(text, 1, 1<<31-1)
	return time.Duration(n) * time.Millisecond, err
}
