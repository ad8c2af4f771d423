// Package tool defines the form of all command-line tools: a function from arguments and streams to an
// exit status, with options in the single-dash style.
package tool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"sort"
	"strconv"
	"strings"
	"time"
)

// The exit statuses of every tool.
const (
	Success = 0
	Failure = 1 // the work failed, or a threshold was missed
	Usage   = 2 // bad arguments
	// Unsupported is what adapters do not have, or this one does not: "not supported by this adapter".
	Unsupported = 3
)

// Env is the environment in which a tool is started.
type Env struct {
	Name           string   // the name by which it was called
	Args           []string // without the name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // Stderr is a terminal, so progress may be shown there
}

// Main is a tool. The context ends when the user interrupts it.
type Main func(context.Context, Env) int

// Errorf prints one line of error under the tool's name.
func (e Env) Errorf(format string, args ...any) {
	fmt.Fprintf(e.Stderr, e.Name+": "+format+"\n", args...)
}

// Fail prints err under the tool's name, in one line, and returns Failure.
func (e Env) Fail(err error) int {
	e.Errorf("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	return Failure
}

// UsageError is a wrong argument. Its text names the option and what it allows.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{Text: fmt.Sprintf(format, args...)}
}

// NoVerb returns the UsageError for a tool's first word that is missing or unknown.
func NoVerb(tool, verb, allowed string) error {
	if verb == "" {
		return Usagef("a command is missing; allowed: %s", allowed)
	}
	return Usagef("%s %s; allowed: %s", tool, verb, allowed)
}

// Flags is a set of options of a tool.
type Flags struct {
	*flag.FlagSet
	env        Env
	synopsis   string
	positional []string // arguments that belong to no option
}

// NewFlags creates the option set of the tool that env describes. synopsis is the usage text above the
// list of options.
func NewFlags(env Env, synopsis string) *Flags {
	fs := flag.NewFlagSet(env.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return &Flags{FlagSet: fs, env: env, synopsis: synopsis}
}

// Parse parses the arguments; options may come before and after the others. done says that the tool ends
// now with the status: after -h, or after a wrong argument, which was reported in one line.
func (f *Flags) Parse() (status int, done bool) {
	err := f.parse(f.env.Args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(f.env.Stdout, f.synopsis)
		f.printOptions(f.env.Stdout)
		return Success, true
	}
	if err != nil {
		return f.Refuse(errors.New(f.explain(err))), true
	}
	return Success, false
}

// Read is Parse without output: a wrong argument and a request for help are errors.
func (f *Flags) Read() error {
	if err := f.parse(f.env.Args); err != nil {
		return &UsageError{Text: f.explain(err)}
	}
	return nil
}

func (f *Flags) parse(args []string) error {
	for {
		if err := f.FlagSet.Parse(args); err != nil {
			return err
		}
		if err := f.noEmptyText(); err != nil {
			return err
		}
		rest := f.FlagSet.Args()
		if n := len(args) - len(rest); n > 0 && args[n-1] == "--" {
			f.positional = append(f.positional, rest...)
			return nil
		}
		if len(rest) == 0 {
			return nil
		}
		f.positional, args = append(f.positional, rest[0]), rest[1:]
	}
}

// noEmptyText refuses an empty text, as that of an unset variable of a script is: it would be taken for an option that
// was not given.
func (f *Flags) noEmptyText() (err error) {
	f.Visit(func(o *flag.Flag) {
		if text, ok := o.Value.(flag.Getter); ok && text.Get() == "" {
			_, usage := flag.UnquoteUsage(o)
			err = Usagef(`%s is ""; it is the %s`, dashed(o.Name), usage)
		}
	})
	return err
}

// NArg returns the number of arguments that belong to no option.
func (f *Flags) NArg() int { return len(f.positional) }

// Arg returns argument i of those that belong to no option, or "" if there are fewer.
func (f *Flags) Arg(i int) string {
	if i < 0 || i >= len(f.positional) {
		return ""
	}
	return f.positional[i]
}

// Say prints one line to the user, prefixed with the tool's name, on the standard error.
func (f *Flags) Say(format string, args ...any) { f.env.Errorf(format, args...) }

// Refuse reports a wrong argument in one line and returns Usage.
func (f *Flags) Refuse(err error) int {
	f.env.Errorf("%s", strings.ReplaceAll(err.Error(), "\n", " "))
	return Usage
}

// NoArguments refuses arguments that belong to no option.
func (f *Flags) NoArguments() error {
	if f.NArg() == 0 {
		return nil
	}
	return Usagef("unexpected argument %q; allowed: %s", f.Arg(0), f.names())
}

// Given reports whether an option was on the command line.
func (f *Flags) Given(name string) bool {
	given := false
	f.Visit(func(o *flag.Flag) { given = given || o.Name == name })
	return given
}

// explain adds what is allowed to an error of the flag package.
func (f *Flags) explain(err error) string {
	text := err.Error()
	f.VisitAll(func(o *flag.Flag) { // the flag package knows only single dashes
		text = strings.Replace(text, " for flag -"+o.Name+": ", " for flag "+dashed(o.Name)+": ", 1)
	})
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		return "flag provided but not defined: " + dashed(name) + "; allowed: " + f.names()
	}
	if strings.HasPrefix(text, "bad flag syntax") {
		return text + "; allowed: " + f.names()
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		if o := f.Lookup(name); o != nil {
			_, usage := flag.UnquoteUsage(o)
			return "flag needs an argument: " + dashed(name) + "; it is the " + usage
		}
	}
	return text
}

func (f *Flags) names() string {
	var names []string
	f.VisitAll(func(o *flag.Flag) {
		names = append(names, dashed(o.Name))
	})
	sort.Strings(names)
	return strings.Join(names, " ")
}

// printOptions lists the options as users write them, with descriptions. Those mention the defaults
// themselves.
func (f *Flags) printOptions(w io.Writer) {
	f.VisitAll(func(o *flag.Flag) {
		value, usage := flag.UnquoteUsage(o)
		word, sep := strings.TrimRight("  "+dashed(o.Name)+" "+value, " "), "\n    \t"
		if len(word) == len("  -x") {
			sep = "\t"
		}
		fmt.Fprintln(w, word+sep+usage)
	})
}

// dashed returns an option as users write it.
func dashed(name string) string {
	if len(name) > 2 {
		return "--" + name
	}
	return "-" + name
}

// Int adds an option that takes an integer from low to high. A default below low means that the option is
// not given; the usage text says what then applies.
func (f *Flags) Int(p *int, name string, value, low, high int, usage string) {
	*p = value
	byDefault := ""
	if value >= low {
		byDefault = fmt.Sprintf(", default %d", value)
	}
	f.Func(name, fmt.Sprintf("`number` %s (%d to %d%s)", usage, low, high, byDefault), func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			return fmt.Errorf("allowed: a number from %d to %d", low, high)
		}
		*p = n
		return nil
	})
}

// Positive adds an option that takes a decimal number above zero.
func (f *Flags) Positive(p *float64, name, usage string) {
	f.Func(name, "`number` "+usage, func(s string) error {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v > 0 && v < 1e15) {
			return errors.New("allowed: a number above 0")
		}
		*p = v
		return nil
	})
}

// Seconds adds an option that takes a time in seconds, up to a day.
func (f *Flags) Seconds(p *time.Duration, name, usage string) {
	f.Func(name, "`seconds` "+usage, func(s string) error {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v >= 0.001 && v <= 86400) {
			return errors.New("allowed: seconds from 0.001 to 86400")
		}
		*p = time.Duration(v * float64(time.Second))
		return nil
	})
}

// Addr adds an option that takes an IPv4 or IPv6 address.
func (f *Flags) Addr(p *netip.Addr, name, usage string) {
	f.Func(name, "`address` "+usage, func(s string) error {
		a, err := ParseAddr(s)
		if err != nil {
			return errors.New(allowedAddr)
		}
		*p = a
		return nil
	})
}

// Port adds an option that takes a port from 1 to 65535.
func (f *Flags) Port(p *uint16, name string, value uint16, usage string) {
	*p = value
	f.Func(name, fmt.Sprintf("`port` %s (1 to 65535, default %d)", usage, value), func(s string) error {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return errors.New("allowed: a port from 1 to 65535")
		}
		*p = uint16(n)
		return nil
	})
}

const allowedAddr = "allowed: an IPv4 or IPv6 address of an adapter, such as 127.0.0.2"

// ParseAddr parses an IPv4 or IPv6 address, with or without square brackets.
func ParseAddr(s string) (netip.Addr, error) {
	bare := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		bare = s[1 : len(s)-1]
	}
	a, err := netip.ParseAddr(bare)
	if err != nil || a.IsUnspecified() || a.IsMulticast() {
		return netip.Addr{}, fmt.Errorf("%q: %s", s, allowedAddr)
	}
	return a.Unmap(), nil
}

// ParseEndpoint parses an address with an optional port: 127.0.0.2, 127.0.0.2:7174, ::1, [::1]:7174.
func ParseEndpoint(s string, port uint16) (netip.AddrPort, error) {
	if a, err := ParseAddr(s); err == nil {
		return netip.AddrPortFrom(a, port), nil
	}
	ap, err := netip.ParseAddrPort(s)
	if err != nil || ap.Port() == 0 || ap.Addr().IsUnspecified() || ap.Addr().IsMulticast() {
		return netip.AddrPort{}, Usagef("%q: allowed: an address with an optional port, such as 127.0.0.2:%d or [::1]:%d", s, port, port)
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
}
