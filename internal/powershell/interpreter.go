package powershell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Limits bound what a script costs. Zero fields are the defaults.
type Limits struct {
	Depth  int // of blocks, commands and expressions in each other; 20000
	Calls  int // of functions and blocks in each other; 1000
	Steps  int // statements that are run, which bounds loops; 10 million
	Memory int // bytes of values that are made, roughly; 512 MiB
	Output int // bytes that are printed, and of messages; 64 MiB
	// Cleanup is how long statements of finally may run after the script was interrupted; 10 seconds.
	Cleanup time.Duration
}

func (l Limits) complete() Limits {
	set := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	set(&l.Depth, 20000)
	set(&l.Calls, 1000)
	set(&l.Steps, 10e6)
	set(&l.Memory, 512<<20)
	set(&l.Output, 64<<20)
	if l.Cleanup == 0 {
		l.Cleanup = 10 * time.Second
	}
	return l
}

// Host is what scripts have besides the language.
type Host interface {
	// Cmdlet returns the command of a name or alias in any letter case; nil: there is none.
	Cmdlet(name string) *Cmdlet
	// Program runs a program by its name, with what it prints going to out; false: there is none.
	Program(ctx context.Context, name string, args []string, out, err io.Writer) (status int, found bool)
	// Confirm asks the user, and returns whether the answer is yes.
	Confirm(question string) (bool, error)
	// Create and Append open a file for a script's output.
	Create(name string, append bool) (io.WriteCloser, error)
	// Modules returns the names of the modules to which its commands belong.
	Modules() []string
	// Getenv returns a variable of the environment.
	Getenv(name string) string
}

// Config is how a script is run.
type Config struct {
	Host     Host
	Out, Err io.Writer
	Limits   Limits
	JSON     bool // results are printed as JSON
	// Records has results and messages printed to Out as lines of JSON that another program reads, each when it comes.
	Records     bool
	WhatIf      bool // as if every command had -WhatIf
	Suggestions func(command string) string
}

// Interpreter runs scripts one after the other, with the variables that they leave.
type Interpreter struct {
	cfg      Config
	limits   Limits
	ctx      context.Context
	global   *scope // what every scope is in
	script   *scope // that of the script
	scope    *scope // that of what runs
	depth    int
	steps    int
	memory   int
	failures int
	said     int   // bytes of errors that were printed
	errors   []any // $Error
	// complaints takes errors where 2> redirects them; nil: they are printed.
	complaints emit
	tries      int               // bodies of try with a catch that run
	calls      int               // functions and blocks that run in each other
	caught     []*RunError       // whose catch runs, the innermost last
	classes    map[string]*class // of the script
	statics    map[*classProperty]*slot
	out        *limitedWriter
	printer    printer
}

// New returns an interpreter.
func New(cfg Config) *Interpreter {
	l := cfg.Limits.complete()
	global := newScope(nil)
	for name, value := range map[string]any{"erroractionpreference": "Continue", "warningpreference": "Continue",
		"verbosepreference": "SilentlyContinue", "debugpreference": "SilentlyContinue", "informationpreference": "SilentlyContinue",
		"progresspreference": "Continue", "confirmpreference": "High", "whatifpreference": cfg.WhatIf} { // about_Preference_Variables
		global.put(name, value)
	}
	script := newScope(global)
	in := &Interpreter{cfg: cfg, limits: l, global: global, script: script, scope: script}
	in.out = &limitedWriter{to: cfg.Out, left: l.Output, most: l.Output}
	in.printer = printer{out: in.out, json: cfg.JSON, records: cfg.Records}
	return in
}

// limitedWriter refuses more than a number of bytes.
type limitedWriter struct {
	to         io.Writer
	left, most int
}

func (w *limitedWriter) Write(b []byte) (int, error) {
	if len(b) > w.left {
		return 0, &LimitError{"bytes of output", w.most}
	}
	w.left -= len(b)
	return w.to.Write(b)
}

// Run runs a script. Errors of commands are printed, and the script goes on, as PowerShell does unless -ErrorAction says otherwise;
// Failures counts them. The error is what ended the script: a *RunError of the language itself, a *LimitError or that of ctx, or an
// *ArgumentError if it does not take the arguments, the words of a command line.
func (in *Interpreter) Run(ctx context.Context, s *Script, args ...string) error {
	in.ctx, in.classes = ctx, s.classes
	err := in.runScript(s, args)
	var j *jumped
	if errors.As(err, &j) {
		err = nil
		if j.word == "exit" && j.value != nil {
			if n, e := Integer(j.value); e == nil && n != 0 {
				err = &ExitError{int(n)}
			}
		}
	}
	return errors.Join(err, in.printer.flush())
}

// ExitError is the status with which a script has ended itself.
type ExitError struct{ Status int }

// Error implements error.
func (e *ExitError) Error() string { return fmt.Sprintf("exit %d", e.Status) }

// Failures returns how many commands have failed so far.
func (in *Interpreter) Failures() int { return in.failures }

// print shows results of the script itself.
func (in *Interpreter) print(v any) error { return in.printer.print(v) }

// spend counts memory.
func (in *Interpreter) spend(bytes int) error {
	if in.memory += bytes; in.memory > in.limits.Memory {
		return &LimitError{"bytes of values", in.limits.Memory}
	}
	return nil
}

// before is what stands before messages.
var before = map[string]string{warningRecord: "WARNING: ", verboseRecord: "VERBOSE: ", whatIfRecord: "What if: "}

// sayf prints a message for the user, in order with the results.
func (in *Interpreter) sayf(kind, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if in.cfg.Records {
		_ = writeRecord(in.out, record{Record: kind}, text)
		return
	}
	_ = in.printer.flush()
	fmt.Fprintln(in.cfg.Err, before[kind]+text)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
