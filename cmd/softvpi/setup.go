package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/setup"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

type setupCmd struct {
	Install setupInstallCmd `cmd:"" default:"withargs" help:"Install or upgrade: the program, links of the tools, C libraries, manual pages, completion, the service of systemd and the PowerShell module. A run that was ended, however, is completed or rolled back by the next one. Properties of the manuals' unattended installation are read from the environment and the command line: MT_SKIPFWUPGRD, MT_WMI, MT_RESTORECONF, MT_NDPROPERTY, PERFCHECK, MT_DRIVER_LOAD_TIMEOUT, MT_DRIVERS_ONLY."`
	Remove  setupRemoveCmd  `cmd:"" help:"Remove what was installed. Configuration, registry and logs stay, unless --purge is given."`
	Status  setupStatusCmd  `cmd:"" help:"Say what is installed, and whether its files are as they were installed; the status is 1 if not."`
	Unit    setupUnitCmd    `cmd:"" help:"Print a unit by which systemd runs the driver of a user, or of the system."`
}

type setupTarget struct {
	Prefix string `placeholder:"DIR" help:"Directory with bin, lib and share (default: /usr/local for root, else .local in the user's home)."`
	Log    string `placeholder:"FILE" help:"File for what setup does, as /l*vx (default: MLNX_WinOF.log0 in the state directory)."`
}

// prefix returns the directory to install in.
func (c *setupTarget) prefix() (string, error) {
	if c.Prefix != "" {
		return filepath.Abs(c.Prefix)
	}
	if os.Geteuid() == 0 {
		return "/usr/local", nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", tool.Usagef("this user has no home; name a directory with --prefix")
	}
	return filepath.Join(home, ".local"), nil
}

// setupRun is one run of setup.
type setupRun struct {
	*session
	log    *os.File
	target *setup.Target
	prefix string
	// manager is that of the system, whose units are installed, too; nil: they are not.
	manager *serviceManager
}

// begin opens the log and the prefix, and ends what a run before has begun.
func (c *setupTarget) begin(s *session) (*setupRun, error) {
	prefix, err := c.prefix()
	if err != nil {
		return nil, err
	}
	name := c.Log
	if name == "" {
		name = filepath.Join(paths.State(), "MLNX_WinOF.log0")
		if err := os.MkdirAll(paths.State(), 0o700); err != nil {
			return nil, fmt.Errorf("log: %w; --log names another file", err)
		}
	}
	log, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	r := &setupRun{session: s, log: log, prefix: prefix, manager: managerFor(s.ctx, prefix)}
	if runtime.GOOS != "linux" {
		return r, r.fail(setup.WrongPlatform, fmt.Errorf("setup is for Linux, not %s", runtime.GOOS))
	}
	if r.target, err = setup.Open(prefix); err != nil {
		return r, r.fail(setup.Fatal, err)
	}
	r.target.Step = func(step string) { r.note("%s", step) }
	was, err := r.target.Recover()
	if err != nil {
		return r, r.fail(setup.Fatal, err)
	}
	if was != setup.Nothing {
		r.say("a setup that was ended before was %s", was)
	}
	return r, nil
}

func (r *setupRun) close() {
	if r == nil {
		return
	}
	if r.target != nil {
		r.target.Close()
	}
	r.log.Close()
}

// note writes a line into the log.
func (r *setupRun) note(format string, args ...any) {
	fmt.Fprintf(r.log, "%s "+format+"\n", append([]any{time.Now().UTC().Format(time.RFC3339)}, args...)...)
}

// say writes a line into the log and to the user.
func (r *setupRun) say(format string, args ...any) {
	r.note(format, args...)
	fmt.Fprintf(r.env.Stdout, format+"\n", args...)
}

// warn reports a warning by its number and text in the manuals.
func (r *setupRun) warn(code int, cause error) {
	r.note("warning %d: %s: %v", code, setup.Text(code), cause)
	r.env.Errorf("warning %d: %s: %s", code, setup.Text(code), oneLine(cause))
}

// fail reports one of the return codes. Systems but Windows keep eight bits of a status, so the message says both.
func (r *setupRun) fail(code int, cause error) error {
	r.note("return code %d: %s: %v", code, setup.Text(code), cause)
	status := setupStatus(runtime.GOOS, code)
	kept := ""
	if status != code {
		kept = fmt.Sprintf(" (exit status %d, its lowest eight bits)", status)
	}
	r.env.Errorf("return code %d%s: %s: %s; log: %s", code, kept, strings.TrimSuffix(setup.Text(code), "."), oneLine(cause), r.log.Name())
	return silentError{status}
}

// setupStatus returns what a system keeps of a return code.
func setupStatus(system string, code int) int {
	if system == "windows" {
		return code
	}
	return code & 0xff
}

type setupInstallCmd struct {
	setupTarget
	Words []string `arg:"" optional:"" help:"Properties as NAME=VALUE, and what the manuals' command lines have: /S /v /qn /norestart /l*vx FILE, /x to remove."`
}

func (c setupInstallCmd) Run(s *session) error {
	p := setup.Defaults()
	err := p.FromEnvironment(os.LookupEnv)
	var words setup.Words
	if err == nil {
		words, err = p.Parse(c.Words)
	}
	if err != nil {
		return tool.Usagef("%v", err)
	}
	if words.Log != "" {
		c.Log = words.Log
	}
	if words.Remove {
		return setupRemoveCmd{setupTarget: c.setupTarget}.Run(s)
	}
	r, err := c.begin(s)
	defer r.close()
	if err != nil {
		return err
	}
	return r.install(&p)
}

func (r *setupRun) install(p *setup.Properties) error {
	items, err := setupItems(r.ctx, r.prefix, p)
	if wrong := (*wrongMachineError)(nil); errors.As(err, &wrong) {
		return r.fail(setup.WrongPlatform, err)
	}
	if err != nil {
		return r.fail(setup.Fatal, err)
	}
	if r.manager != nil {
		items = append(items, systemItems(r.prefix)...)
	}
	var moves []setup.Move
	if !p.RestoreConf {
		if moves, err = r.asideMoves(); err != nil {
			return r.fail(setup.Fatal, err)
		}
	}
	before, err := r.target.Installed()
	if err != nil {
		return r.fail(setup.Fatal, err)
	}
	m, err := r.target.Install(version(), items, moves)
	if err == nil {
		err = r.manager.settle(r.prefix)
	}
	if err != nil {
		return r.fail(setup.Fatal, err)
	}
	verb := "installed"
	if before != nil {
		verb = "upgraded from " + before.Version + " to"
	}
	r.say("%s %s in %s: %d files and links", verb, m.Version, r.prefix, len(m.Entries))
	if r.manager != nil {
		r.say("the driver of the system: systemd-sysusers makes its user, and after systemctl enable --now softvpi.socket " +
			"the first program starts it")
	}
	for _, x := range moves {
		r.say("set aside %s as %s (MT_RESTORECONF=0)", x.From, x.To)
	}
	r.say("firmware: the program is the engine, and comes with it; images burned with flint stay as they are%s",
		map[bool]string{true: " (MT_SKIPFWUPGRD=1)"}[p.SkipFirmware])
	if p.RestoreConf {
		r.checkConfiguration()
	}
	if p.LoadDriver {
		r.loadDriver(p)
	}
	r.say("log: %s", r.log.Name())
	return nil
}

// asideMoves sets the configuration and the registry aside, so that the driver begins with defaults.
func (r *setupRun) asideMoves() (moves []setup.Move, err error) {
	running, err := r.driverRuns()
	if err != nil {
		return nil, err
	}
	if running {
		return nil, errors.New("MT_RESTORECONF=0 sets the registry aside, which a running driver uses: softvpi down stops it")
	}
	for _, f := range []string{paths.Config(), filepath.Join(paths.State(), registry.FileName)} {
		if _, err := os.Stat(f); err != nil {
			continue
		}
		to := f + ".before-setup"
		for n := 2; ; n++ {
			if _, err := os.Lstat(to); errors.Is(err, os.ErrNotExist) {
				break
			}
			to = fmt.Sprintf("%s.before-setup-%d", f, n)
		}
		moves = append(moves, setup.Move{From: f, To: to})
	}
	return moves, nil
}

// checkConfiguration warns of a configuration that the installed version cannot read.
func (r *setupRun) checkConfiguration() {
	file := paths.Config()
	_, err := config.Load(file)
	switch {
	case file == "" || errors.Is(err, os.ErrNotExist):
		r.note("there is no configuration file %s", file)
	case err != nil:
		r.warn(setup.NotRestored, err)
	default:
		r.say("configuration: %s is kept", file)
	}
}

type setupRemoveCmd struct {
	setupTarget
	Purge bool `help:"Remove the configuration, the registry and the logs of the driver, too."`
}

func (c setupRemoveCmd) Run(s *session) error {
	r, err := c.begin(s)
	defer r.close()
	if err != nil {
		return err
	}
	var purge []string
	if c.Purge {
		running, err := r.driverRuns()
		if err != nil {
			return r.fail(setup.Fatal, err)
		}
		if running {
			return r.fail(setup.Fatal, errors.New("a driver runs, whose registry --purge would remove: softvpi down stops it"))
		}
		if r.manager.drives() {
			return r.fail(setup.Fatal, errors.New("the driver of the system runs, whose registry --purge would remove: "+
				"systemctl stop softvpi.socket softvpi.service stops it"))
		}
		purge = ownFiles(paths.Config(), paths.State(), r.log.Name())
		if r.manager != nil {
			purge = append(append(purge, ownFiles(systemConfig, systemState, r.log.Name())...), filepath.Dir(systemConfig), systemState)
		}
	}
	had, err := r.target.Remove(append(r.manager.links(r.prefix), purge...))
	if err == nil {
		err = r.manager.settle(r.prefix)
	}
	if err != nil {
		return r.fail(setup.Fatal, err)
	}
	if !had {
		r.say("nothing is installed in %s", r.prefix)
	} else {
		r.say("removed from %s", r.prefix)
	}
	if c.Purge {
		r.say("purged %d files of the driver", len(purge))
		if filepath.Dir(r.log.Name()) == paths.State() {
			return errors.Join(os.Remove(r.log.Name()), ignoreNotEmpty(os.Remove(paths.State())))
		}
	}
	return nil
}

// ignoreNotEmpty leaves a directory in which there is something else.
func ignoreNotEmpty(err error) error {
	if err != nil && !errors.Is(err, os.ErrNotExist) && !strings.Contains(err.Error(), "not empty") {
		return err
	}
	return nil
}

type setupStatusCmd struct {
	Prefix string `placeholder:"DIR" help:"Directory with bin, lib and share (default: /usr/local for root, else .local in the user's home)."`
}

func (c setupStatusCmd) Run(s *session) error {
	prefix, err := (&setupTarget{Prefix: c.Prefix}).prefix()
	if err != nil {
		return err
	}
	if _, err := os.Stat(prefix); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("nothing is installed in %s", prefix)
	}
	t, err := setup.Open(prefix)
	if err != nil {
		return err
	}
	defer t.Close()
	m, err := t.Installed()
	if err != nil {
		return err
	}
	if t.Unfinished() {
		return errors.New("a setup was ended before it was done: softvpi setup, or softvpi setup remove, completes it or rolls it back")
	}
	if m == nil {
		return fmt.Errorf("nothing is installed in %s", prefix)
	}
	if damaged := t.Damaged(m); len(damaged) > 0 {
		return fmt.Errorf("%s is installed, but not as it was: %s", m.Version, strings.Join(damaged, ", "))
	}
	_, err = fmt.Fprintf(s.env.Stdout, "%s is installed in %s: %d files and links, as they were installed\n", m.Version, prefix, len(m.Entries))
	return err
}

type setupUnitCmd struct {
	Kind    string `enum:"service,socket,system-service,system-socket,system-function-socket,sysusers,catalog" default:"service" help:"Which: service, the driver of a user; socket, its sockets, by which the first program starts it; system-service and system-socket, those of the system's driver; system-function-socket, the socket of a virtual function of it; sysusers, what its user is made of; catalog, by which journalctl -x explains events."`
	Program string `placeholder:"FILE" help:"The program that the unit runs (default: this one)."`
}

func (c setupUnitCmd) Run(s *session) error {
	programless := map[string]string{"socket": setup.Sockets, "system-socket": setup.SystemSockets,
		"system-function-socket": setup.SystemFunctionSocket, "sysusers": setup.SystemUsers, "catalog": catalogue.JournalCatalog()}
	if text, ok := programless[c.Kind]; ok {
		if c.Program != "" {
			return tool.Usagef("--program is %q; allowed: nothing with --kind %s, which runs no program", c.Program, c.Kind)
		}
		_, err := io.WriteString(s.env.Stdout, text)
		return err
	}
	program := c.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return err
		}
	}
	if !filepath.IsAbs(program) {
		return tool.Usagef("--program is %q; allowed: an absolute path", program)
	}
	unit := setup.Unit
	if c.Kind == "system-service" {
		unit = setup.SystemUnit
	}
	_, err := io.WriteString(s.env.Stdout, unit(program))
	return err
}
