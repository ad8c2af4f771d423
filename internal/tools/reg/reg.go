// Package reg is `softvpi reg`: the driver's registry on the command line, with the syntax, the output and
// the messages of Windows' reg.exe. If a driver runs, everything goes through it; otherwise the file
// in the state directory is opened.
package reg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const synopsis = `REG operation [parameters]

  REG QUERY  KeyName [/v [ValueName] | /ve] [/s] [/f Data [/k] [/d] [/c] [/e]] [/t Type] [/z] [/se Separator]
  REG ADD    KeyName [/v ValueName | /ve] [/t Type] [/s Separator] [/d Data] [/f]
  REG DELETE KeyName [/v ValueName | /ve | /va] [/f]
  REG EXPORT KeyName FileName [/y] [/a]
  REG IMPORT FileName (- is the standard input)

  KeyName    HKLM\SYSTEM\CurrentControlSet\..., or the name of a key of this driver alone (roce_mode): that
             of the adapter named with --adapter, or the driver's.
  /v         The value of that name. With /f and without a name: search names of values only.
  /ve        The default value of the key.
  /va        All values of the key.
  /s         QUERY: the keys below too. ADD: what separates the strings of /d (default \0).
  /f Data    QUERY: search names and data for a text, in which * and ? stand for any.
  /f         ADD, DELETE: do not ask.
  /k /d      Search names of keys, data, only.
  /c /e      Search with regard to letter case; the whole text.
  /t Type    REG_SZ (default), REG_EXPAND_SZ, REG_MULTI_SZ, REG_DWORD, REG_QWORD, REG_BINARY, REG_NONE.
  /z         Show the number of the type too.
  /se        What stands between the strings of a REG_MULTI_SZ (default \0).
  /y         Overwrite the file without asking.
  /a         Write the file as REGEDIT4 (Windows-1252) instead of version 5.00 (UTF-16).
  /reg:32 /reg:64  Both views are the same here.

  --adapter NAME   Adapter of a key that is given by its name alone.
  --json           QUERY: print keys and values as JSON.
  --unchecked      ADD, IMPORT: store values that the driver does not allow, too; it uses the default then.
  --socket PATH    Socket of the driver.
  --state DIR      State directory that holds the registry. Without --socket its file is opened, which needs
                   that no driver runs with it.

Exit status: 0 success, 1 failure, 2 if an argument or a value is wrong; of a search 0 where something was found, 1 where nothing was.
`

// syntaxError is an argument for which reg.exe would print "Invalid syntax".
type syntaxError struct{ operation, text string }

func (e *syntaxError) Error() string {
	help := "REG /?"
	if e.operation != "" {
		help = "REG " + strings.ToUpper(e.operation) + " /?"
	}
	return fmt.Sprintf("Invalid syntax. %s\nType %q for usage.", e.text, help)
}

// notFound is reg.exe's message for a key or value that does not exist.
const notFound = "The system was unable to find the specified registry key or value."

var errNotFound = registry.ErrNotFound

// run is one run of the tool.
type run struct {
	ctx   context.Context
	env   tool.Env
	in    *bufio.Reader
	store store
}

// operations are the tool's operations by name.
var operations = map[string]struct {
	options string // as parse takes them
	names   int    // arguments without an option
	create  bool   // a registry that is not there
	do      func(*run, *arguments) (status int, err error)
}{
	"query":  {"v? ve s f= k d c e t= z se= reg:32 reg:64", 1, false, (*run).query},
	"add":    {"v= ve t= s= d= f reg:32 reg:64", 1, true, (*run).add},
	"delete": {"v= ve va f reg:32 reg:64", 1, false, (*run).delete},
	"export": {"y a reg:32 reg:64", 2, false, (*run).export},
	"import": {"reg:32 reg:64", 1, true, (*run).importFile},
}

// Main runs the tool.
func Main(ctx context.Context, env tool.Env) int {
	if len(env.Args) == 0 || isHelp(env.Args[0]) || len(env.Args) > 1 && isHelp(env.Args[1]) {
		fmt.Fprint(env.Stdout, synopsis)
		if len(env.Args) == 0 {
			return tool.Usage
		}
		return tool.Success
	}
	r := &run{ctx: ctx, env: env, in: bufio.NewReader(env.Stdin)}
	status, err := r.operation(strings.ToLower(env.Args[0]), env.Args[1:])
	if err != nil {
		fmt.Fprintf(env.Stderr, "ERROR: %s\n", sentence(err))
		return statusOf(err)
	}
	return status
}

// wrongValue is an argument or a value that cannot be meant, with what is allowed.
type wrongValue struct{ text string }

func (e *wrongValue) Error() string { return e.text }

func wrongf(format string, args ...any) error { return &wrongValue{fmt.Sprintf(format, args...)} }

// statusOf returns the exit status of an error: reg.exe has 1 for all of them, and every tool here 2 for what the user has to write
// otherwise.
func statusOf(err error) int {
	var syntax *syntaxError
	var value *wrongValue
	var key *catalogue.ValueError
	var field *api.FieldError
	switch {
	case errors.As(err, &syntax), errors.As(err, &value), errors.As(err, &key), errors.As(err, &field), errors.Is(err, registry.ErrInvalid):
		return tool.Usage
	}
	return tool.Failure
}

// sentence returns an error as reg.exe prints it.
func sentence(err error) string {
	if errors.Is(err, registry.ErrNotFound) {
		return notFound
	}
	if errors.Is(err, context.Canceled) {
		return "stopped"
	}
	return err.Error()
}

func isHelp(s string) bool { return s == "/?" || s == "-?" || s == "-h" || s == "--help" }

func (r *run) operation(name string, args []string) (int, error) {
	op, ok := operations[name]
	if !ok {
		return 0, &syntaxError{"", fmt.Sprintf("%q is not an operation; allowed: query, add, delete, export, import.", name)}
	}
	a, err := parse(name, op.options, args)
	if err != nil {
		return 0, err
	}
	if len(a.names) != op.names {
		return 0, &syntaxError{name, fmt.Sprintf("%d names are given; allowed: %d.", len(a.names), op.names)}
	}
	if r.store, err = open(r.ctx, a.value("socket"), a.value("state"), op.create); err != nil {
		return 0, err
	}
	if f, ok := r.store.(interface{ Aside() string }); ok && f.Aside() != "" {
		fmt.Fprintf(r.env.Stderr, "note: the registry's file was corrupt; it was kept as %s and a new one made\n", f.Aside())
	}
	status, err := op.do(r, a)
	return status, errors.Join(err, r.store.Close())
}

// done reports success, and the notices.
func (r *run) done(notices []registry.Notice) (int, error) {
	fmt.Fprintln(r.env.Stdout, "The operation completed successfully.")
	for _, n := range notices {
		name := n.Name
		if name == "" {
			name = "(Default)"
		}
		fmt.Fprintf(r.env.Stderr, "note: %s %s\n", name, n.Text)
	}
	return tool.Success, nil
}

// ask asks a question until it is answered with yes or no; the end of the input means no.
func (r *run) ask(format string, args ...any) (bool, error) {
	for {
		fmt.Fprintf(r.env.Stdout, format+" (Yes/No)? ", args...)
		line, err := inputfile.ReadLine(r.ctx, r.in)
		switch answer := strings.ToLower(strings.TrimSpace(line)); {
		case answer == "y" || answer == "yes":
			return true, nil
		case answer == "n" || answer == "no":
			fmt.Fprintln(r.env.Stdout, "The operation was canceled by the user.")
			return false, nil
		case errors.Is(err, io.EOF):
			return false, errors.New("no answer; /f or /y does it without asking")
		case err != nil:
			return false, err
		}
	}
}
