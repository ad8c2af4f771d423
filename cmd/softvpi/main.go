// Command softvpi is the driver of the software adapters and all tools around them: `softvpi up` runs the
// driver; a tool runs as `softvpi nd_send_bw ...` or through a link with its name.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/ibsim"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	env := tool.Env{Name: calledAs(os.Args), Args: os.Args[min(1, len(os.Args)):], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: isTerminal(os.Stderr)}
	end := profile(env)
	status := run(ctx, env)
	stop()
	os.Exit(end(status))
}

// calledAs returns the name by which the program was started, without directory and .exe.
func calledAs(args []string) string {
	if len(args) == 0 {
		return "softvpi"
	}
	return strings.TrimSuffix(filepath.Base(args[0]), exe)
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// run starts the tool or command that env names.
func run(ctx context.Context, env tool.Env) int {
	out := &output{to: env.Stdout}
	env.Stdout = out
	return out.status(env, start(ctx, env))
}

func start(ctx context.Context, env tool.Env) int {
	if main := toolNamed(env.Name); main != nil {
		return main(ctx, env)
	}
	if len(env.Args) > 0 {
		if main := toolNamed(env.Args[0]); main != nil {
			env.Name, env.Args = env.Args[0], env.Args[1:]
			return main(ctx, env)
		}
	}
	env.Name = "softvpi"
	return command(ctx, env)
}

// cli is the command line of softvpi itself.
type cli struct {
	Up         upCmd         `cmd:"" help:"Run the driver: bring the adapters up and let programs attach."`
	Status     statusCmd     `cmd:"" help:"Show the adapters, ports, GIDs and queue pairs of the running driver."`
	Wait       waitCmd       `cmd:"" help:"Wait until a driver runs and programs can attach."`
	Health     healthCmd     `cmd:"" help:"Say whether the driver is live and every enabled adapter passes packets; the status is 1 if not."`
	Down       downCmd       `cmd:"" help:"Stop the running driver, and wait until it has ended."`
	Link       linkCmd       `cmd:"" help:"Show or set what a link does to packets: loss, delay and so on."`
	QoS        qosCmd        `cmd:"" name:"qos" help:"Show or set what ports do about priorities, and what DCBX has agreed."`
	VF         vfCmd         `cmd:"" name:"vf" help:"Create, change, remove or list virtual functions at the ports of adapters."`
	Guest      guestCmd      `cmd:"" help:"Give the programs of a virtual machine a virtual function of the host's driver."`
	Overlay    overlayCmd    `cmd:"" name:"overlay" help:"Say where the customer addresses of virtual subnets are, which virtual switches carry in VXLAN or NVGRE."`
	VSwitch    vswitchCmd    `cmd:"" name:"vswitch" help:"Make virtual switches over adapters, with network adapters for the host, namespaces and machines."`
	Adapter    adapterCmd    `cmd:"" help:"Enable or disable an adapter while programs use it."`
	Ps         psCmd         `cmd:"" help:"Run a PowerShell script: the commands of the manuals, on the running driver."`
	Reg        regCmd        `cmd:"" passthrough:"" help:"Read and change the driver's registry, with the syntax of Windows' reg.exe."`
	Counters   countersCmd   `cmd:"" passthrough:"" help:"List, read, watch and reset the counters of the adapters."`
	Events     eventsCmd     `cmd:"" passthrough:"" help:"List or follow the events of the driver."`
	Report     reportCmd     `cmd:"" passthrough:"" help:"Gather what somebody needs who looks for a fault into one archive, without secrets."`
	Dbg        dbgCmd        `cmd:"" help:"Find out how the driver gets on when something goes wrong."`
	Web        webCmd        `cmd:"" help:"Print a link to the device manager pages of the running driver."`
	Verbs      verbsCmd      `cmd:"" help:"Run unmodified verbs programs on the adapters, or find out why one does not see them."`
	Container  containerCmd  `cmd:"" help:"Show or change what the containers of softvpi up --containers may make the driver hold."`
	CDI        cdiCmd        `cmd:"" name:"cdi" help:"Give containers the adapters, by the Container Device Interface."`
	Fabric     fabricCmd     `cmd:"" help:"Run an InfiniBand fabric of virtual nodes, or print the netlist of one."`
	Simulate   simulateCmd   `cmd:"" help:"Run a scenario of Ethernet switches and RDMA hosts in virtual time, with PFC, ECN and DCQCN."`
	Tools      toolsCmd      `cmd:"" help:"List the tools, or create links to call them by name."`
	Setup      setupCmd      `cmd:"" help:"Install the program below a directory, upgrade it there, and remove it."`
	Man        manCmd        `cmd:"" help:"Write the manual page of softvpi, a command or a tool, or all of them into a directory."`
	Completion completionCmd `cmd:"" help:"Write a script by which a shell (bash, zsh, fish) completes the command lines of softvpi and its tools."`
	RunDemo    demoCmd       `cmd:"" name:"run-demo" help:"Bring up two adapters and show them at work, as make run does."`
	Bench      benchCmd      `cmd:"" help:"Measure bandwidth, latency, waiting and scale compared with TCP, as make bench does."`
	Version    versionCmd    `cmd:"" help:"Print the version."`

	Complete     completeCmd     `cmd:"" hidden:"" help:"Print the words that may complete a command line."`
	BenchTCP     benchTCPCmd     `cmd:"" name:"bench-tcp" hidden:"" help:"Be one side of bench's plain TCP sender."`
	BenchWorker  benchWorkerCmd  `cmd:"" name:"bench-worker" hidden:"" help:"Be a program that bench tells what to do."`
	BenchFrames  benchFramesCmd  `cmd:"" name:"bench-frames" hidden:"" help:"Be a program that sends or receives Ethernet frames for bench."`
	BenchForward benchForwardCmd `cmd:"" name:"bench-forward" hidden:"" help:"Pass frames between two TAPs, vpi0 and vpi1, for bench."`
	BenchPair    benchPairCmd    `cmd:"" name:"bench-pair" hidden:"" help:"Measure two adapters of one process with one thread."`
}

// session is passed to every command.
type session struct {
	ctx context.Context
	env tool.Env
}

// exit ends parsing after help was printed.
type exit int

// grammar returns what a parser has to know for a command line that begins with this word: its command, or all if it is none. Of all
// commands a parser takes 13 ms to make.
func grammar(word string) any {
	for f := range reflect.TypeFor[cli]().Fields() {
		if commandName(f) == word {
			return reflect.New(reflect.StructOf([]reflect.StructField{{Name: f.Name, Type: f.Type, Tag: f.Tag}})).Interface()
		}
	}
	return &cli{}
}

// commandName returns the name of a command of cli.
func commandName(f reflect.StructField) string {
	return cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name))
}

// newParser makes the parser of a grammar: cli, or a part of it.
func newParser(env tool.Env, grammar any) (*kong.Kong, error) {
	return kong.New(grammar, kong.Name("softvpi"),
		kong.Description("A software RDMA (RoCE) adapter and its driver stack in user space. Every tool runs too: softvpi nd_send_bw -h; softvpi tools list names them."),
		kong.UsageOnError(), kong.Vars{"ibsimDefault": ibsim.DefaultName, "ibsimName": cmp.Or(os.Getenv("IBSIM_SOCKNAME"),
			ibsim.DefaultName)}, kong.Writers(env.Stdout, env.Stderr), kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
}

func command(ctx context.Context, env tool.Env) (status int) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case exit:
			status = int(x)
		default:
			panic(x)
		}
	}()
	if len(env.Args) == 0 {
		env.Args = []string{"--help"}
	}
	parser, err := newParser(env, grammar(env.Args[0]))
	if err != nil {
		return env.Fail(err)
	}
	k, err := parser.Parse(scriptArguments(env.Args))
	if out, ok := env.Stdout.(*output); ok && err != nil && out.failed() != nil {
		return env.Fail(err) // help could not be written
	}
	if err != nil {
		env.Errorf("%s; %s", oneLine(err), allowed(parser, err))
		return tool.Usage
	}
	if err := noEmptyFlag(k); err != nil {
		return exitStatus(ctx, env, err)
	}
	return exitStatus(ctx, env, k.Run(&session{ctx, env}))
}

// noEmptyFlag refuses a flag whose text is empty, as that of an unset variable of a script is: it would be taken for a
// flag that was not given.
func noEmptyFlag(k *kong.Context) error {
	for _, at := range k.Path {
		if f := at.Flag; f != nil && f.Target.Kind() == reflect.String && f.Target.Len() == 0 {
			return tool.Usagef(`--%s is ""; it takes: %s`, f.Name, f.Help)
		}
	}
	return nil
}

// allowed says what is allowed where the parser stopped.
func allowed(parser *kong.Kong, err error) string {
	node := parser.Model.Node
	var at *kong.ParseError
	if errors.As(err, &at) && at.Context.Selected() != nil {
		node = at.Context.Selected()
	}
	var names []string
	for _, c := range node.Children {
		if c.Hidden {
			continue
		}
		names = append(names, c.Name)
	}
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			names = append(names, "--"+f.Name)
		}
	}
	if node == parser.Model.Node {
		names = append(names, "or a tool of softvpi tools list")
	}
	return "allowed: " + strings.Join(names, " ")
}

// exitStatus reports err, if any, and returns its exit status. If ctx has ended the user stopped the
// command, and only that is reported.
func exitStatus(ctx context.Context, env tool.Env, err error) int {
	var usage *tool.UsageError
	var field *api.FieldError
	var setting *impair.FieldError
	var file *config.Error
	var silent silentError
	switch {
	case err == nil:
		return tool.Success
	case errors.As(err, &silent):
		return silent.status
	case errors.As(err, &usage), errors.As(err, &field), errors.As(err, &setting), errors.As(err, &file):
		env.Errorf("%s", oneLine(err))
		return tool.Usage
	case ctx.Err() != nil:
		env.Errorf("stopped")
		return tool.Failure
	}
	return env.Fail(err)
}

// silentError ends the program with a status after everything was reported.
type silentError struct{ status int }

func (e silentError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// revision is set by the linker if the sources come from a checkout.
var revision string

func version() string {
	if revision == "" {
		return "development"
	}
	return revision
}

type versionCmd struct{}

func (versionCmd) Run(s *session) error {
	_, err := io.WriteString(s.env.Stdout, "softvpi "+version()+"\n")
	return err
}
