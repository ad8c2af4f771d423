// Package ps is `softvpi ps`: it runs PowerShell scripts, with the commands of package cmdlets over a running driver and the
// tools of softvpi as programs.
package ps

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/softvpi/softvpi/internal/cmdlets"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/powershell"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Options are what a script is run with.
type Options struct {
	File    string   // a script; "-": the standard input
	Command string   // a script as text, if there is no file
	Args    []string // of the script
	JSON    bool     // results as JSON
	Records bool     // results and messages as lines of JSON
	WhatIf  bool     // nothing is changed
	Driver  cmdlets.Driver
	// Tool returns the tool of a name that scripts may run; nil: there is none.
	Tool func(name string) tool.Main
}

// Run runs a script. The error is a *tool.UsageError if the script is none or does not take its arguments, ErrFailed if commands
// of it failed, or what ended it.
func Run(ctx context.Context, env tool.Env, o Options) error {
	source, err := o.source(env)
	if err != nil {
		return err
	}
	s, err := powershell.Parse(source)
	if err != nil {
		return tool.Usagef("%s: %v", o.name(), err)
	}
	set := cmdlets.New(o.Driver, cmdlets.System{})
	h := &host{set: set, env: env, tool: o.Tool, answers: bufio.NewReader(env.Stdin)}
	in := powershell.New(powershell.Config{Host: h, Out: env.Stdout, Err: env.Stderr, JSON: o.JSON, Records: o.Records, WhatIf: o.WhatIf,
		Suggestions: set.Suggest})
	err = in.Run(ctx, s, o.Args...)
	var wrong *powershell.ArgumentError
	if errors.As(err, &wrong) {
		return tool.Usagef("%s: %v", o.name(), wrong)
	}
	if n := in.Failures(); err == nil && n > 0 {
		err = ErrFailed
	}
	return err
}

// ErrFailed says that commands of a script failed, which has been reported.
var ErrFailed = errors.New("commands failed")

func (o Options) name() string {
	switch o.File {
	case "":
		return "-c"
	case "-":
		return "standard input"
	}
	return o.File
}

func (o Options) source(env tool.Env) (string, error) {
	if o.File == "" {
		return o.Command, nil
	}
	const most = 4 << 20
	if o.File == "-" {
		b, err := io.ReadAll(io.LimitReader(env.Stdin, most+1))
		if err != nil {
			return "", err
		}
		return decode("standard input", b)
	}
	b, err := inputfile.Read(o.File, most)
	if err != nil {
		return "", tool.Usagef("%v", err)
	}
	return decode(o.File, b)
}

// decode returns a script's text: UTF-8, or UTF-16 with a byte order mark, as Windows' editors and Out-File write it.
func decode(name string, b []byte) (string, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	case utf8.Valid(b):
		return string(b), nil
	default:
		return "", tool.Usagef("%s is neither UTF-8 nor UTF-16 with a byte order mark", name)
	}
	units := make([]uint16, 0, len(b)/2)
	for b = b[2:]; len(b) >= 2; b = b[2:] {
		units = append(units, order.Uint16(b))
	}
	return string(utf16.Decode(units)), nil
}

// host is what scripts have besides the language.
type host struct {
	set     *cmdlets.Set
	env     tool.Env
	tool    func(string) tool.Main
	answers *bufio.Reader
}

func (h *host) Cmdlet(name string) *powershell.Cmdlet { return h.set.Cmdlet(name) }
func (h *host) Modules() []string                     { return h.set.Modules() }
func (h *host) Getenv(name string) string             { return os.Getenv(name) }

// Program runs a tool of softvpi. Other programs of the system are not run: scripts that were written for Windows would not mean them.
func (h *host) Program(ctx context.Context, name string, args []string, out, err io.Writer) (int, bool) {
	if i := strings.LastIndexAny(name, `\/`); i >= 0 {
		name = name[i+1:]
	}
	if len(name) > 4 && strings.EqualFold(name[len(name)-4:], ".exe") {
		name = name[:len(name)-4]
	}
	main := h.tool(name)
	if main == nil {
		return 0, false
	}
	return main(ctx, tool.Env{Name: name, Args: args, Stdin: strings.NewReader(""), Stdout: out, Stderr: err}), true
}

// Confirm asks on the standard input.
func (h *host) Confirm(question string) (bool, error) {
	fmt.Fprintf(h.env.Stderr, "Confirm\n%s\n[Y] Yes  [N] No (default is \"Y\"): ", question)
	line, err := h.answers.ReadString('\n')
	if err != nil && line == "" {
		fmt.Fprintln(h.env.Stderr)
		return false, errors.New("-Confirm asks, and nobody answers; allowed: y or n on the standard input, or -Confirm:$false")
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "", "y", "yes", "a":
		return true, nil
	}
	return false, nil
}

func (h *host) Create(name string, add bool) (io.WriteCloser, error) {
	if add {
		return os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	}
	return os.Create(name)
}
