package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/powershell"
)

// pretended is what of Windows the scripts deal with. Each change is a step; one of them may fail, or be the last before the script is
// killed.
type pretended struct {
	files    map[string]string // by path; "" is a directory
	registry map[string]string // values by KEY, a backslash twice, and the name
	service  map[string]string // what the service is; nil: there is none
	inUse    string            // a directory in which a program runs: it cannot be moved or removed
	user     bool              // who runs the script is no administrator
	foreign  bool              // softvpi.exe cannot run there
	steps    int
	failAt   int // the step that fails; 0: none
	killAt   int // from this step on nothing happens; 0: none
	said     bytes.Buffer
}

const (
	environmentKey = `HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment`
	sourceKey      = `HKLM\SYSTEM\CurrentControlSet\Services\EventLog\Application\SoftVPI`
	windowsPath    = `%SystemRoot%\system32;C:\Windows\`
)

func newPretended() *pretended {
	p := &pretended{files: map[string]string{}, registry: map[string]string{environmentKey + `\\Path`: windowsPath}}
	p.unpack("1")
	return p
}

// unpack puts a version of the zip file into a directory.
func (p *pretended) unpack(version string) {
	for _, f := range []string{`softvpi.exe`, `SoftVPI\SoftVPI.psd1`, `install.ps1`} {
		p.files[`C:\zip\`+f] = version
	}
}

// step is one change.
func (p *pretended) step() error {
	p.steps++
	if p.killAt > 0 && p.steps >= p.killAt {
		return errors.New("killed")
	}
	if p.steps == p.failAt {
		return errors.New("it fails")
	}
	return nil
}

// below returns the paths of a file, or of what is in a directory.
func (p *pretended) below(path string) (list []string) {
	for f := range p.files {
		if f == path || strings.HasPrefix(f, path+`\`) {
			list = append(list, f)
		}
	}
	return list
}

func (p *pretended) copy(from, to string) error {
	list := p.below(from)
	if len(list) == 0 {
		return fmt.Errorf("there is no %s", from)
	}
	for _, f := range list {
		p.files[to+strings.TrimPrefix(f, from)] = p.files[f]
	}
	return nil
}

func (p *pretended) remove(path string) error {
	if p.inUse != "" && path == p.inUse {
		return fmt.Errorf("%s is in use", path)
	}
	for _, f := range p.below(path) {
		delete(p.files, f)
	}
	return nil
}

// Cmdlet is that of powershell.Host.
func (p *pretended) Cmdlet(name string) *powershell.Cmdlet {
	i := slices.IndexFunc(commandsOfWindows, func(c commandOfWindows) bool { return strings.EqualFold(c.name, name) })
	if i < 0 {
		return nil
	}
	c := commandsOfWindows[i]
	return &powershell.Cmdlet{Name: c.name, Params: c.params, Run: func(r *powershell.Call) error {
		if c.changes {
			if err := p.step(); err != nil {
				return err
			}
		}
		return c.run(p, r)
	}}
}

type commandOfWindows struct {
	name    string
	changes bool
	params  []powershell.Param
	run     func(*pretended, *powershell.Call) error
}

func words(names ...string) (list []powershell.Param) {
	for i, n := range names {
		list = append(list, powershell.Param{Name: n, Kind: powershell.String, Position: i + 1})
	}
	return list
}

func switchOf(name string) powershell.Param {
	return powershell.Param{Name: name, Kind: powershell.Switch}
}

var commandsOfWindows = []commandOfWindows{
	{"Test-Path", false, words("Path"), func(p *pretended, r *powershell.Call) error {
		path := r.Text("Path")
		if key, ok := strings.CutPrefix(path, "Registry::"); ok {
			_, ok := p.registry[key+`\\TypesSupported`]
			r.Emit(ok)
			return nil
		}
		r.Emit(len(p.below(path)) > 0)
		return nil
	}},
	{"Copy-Item", true, append(words("Path", "Destination"), switchOf("Recurse")), func(p *pretended, r *powershell.Call) error {
		return p.copy(r.Text("Path"), r.Text("Destination"))
	}},
	{"Move-Item", true, words("Path", "Destination"), func(p *pretended, r *powershell.Call) error {
		if p.inUse == r.Text("Path") {
			return fmt.Errorf("%s is in use", p.inUse)
		}
		if len(p.below(r.Text("Destination"))) > 0 {
			return fmt.Errorf("%s is there", r.Text("Destination"))
		}
		if err := p.copy(r.Text("Path"), r.Text("Destination")); err != nil {
			return err
		}
		return p.remove(r.Text("Path"))
	}},
	{"Remove-Item", true, append(words("Path"), switchOf("Recurse"), switchOf("Force")), func(p *pretended, r *powershell.Call) error {
		return p.remove(r.Text("Path"))
	}},
	{"New-Item", true, words("Path", "ItemType"), func(p *pretended, r *powershell.Call) error {
		p.files[r.Text("Path")] = ""
		return nil
	}},
	{"Set-Content", true, words("Path", "Value", "Encoding"), func(p *pretended, r *powershell.Call) error {
		p.files[r.Text("Path")] = r.Text("Value")
		return nil
	}},
	{"Get-Service", false, words("Name"), func(p *pretended, r *powershell.Call) error {
		if p.service == nil {
			return errors.New("there is no such service")
		}
		r.Emit(powershell.NewObject("ServiceController").With("Name", "SoftVPI").With("Status", p.service["status"]))
		return nil
	}},
	{"New-Service", true, words("Name", "BinaryPathName", "DisplayName", "StartupType", "Description"), func(p *pretended, r *powershell.Call) error {
		p.service = map[string]string{"status": "Stopped", "binary": r.Text("BinaryPathName"), "type": r.Text("StartupType"), "account": "LocalSystem"}
		return nil
	}},
	{"Set-Service", true, words("Name", "StartupType"), func(p *pretended, r *powershell.Call) error {
		p.service["type"] = r.Text("StartupType")
		return nil
	}},
	{"Start-Service", true, words("Name"), func(p *pretended, r *powershell.Call) error {
		if len(p.below(strings.Split(p.service["binary"], `"`)[1])) == 0 {
			return errors.New("the program is not there")
		}
		p.service["status"] = "Running"
		return nil
	}},
	{"Stop-Service", true, words("Name"), func(p *pretended, r *powershell.Call) error {
		p.service["status"] = "Stopped"
		return nil
	}},
	{"Get-CimInstance", false, words("ClassName", "Filter"), func(p *pretended, r *powershell.Call) error {
		if p.service == nil || r.Text("ClassName") != "Win32_Service" || r.Text("Filter") != "Name='SoftVPI'" {
			return errors.New("there is none")
		}
		r.Emit(powershell.NewObject("Win32_Service").With("Name", "SoftVPI"))
		return nil
	}},
	{"Invoke-CimMethod", true, append(words("MethodName"), powershell.Param{Name: "Arguments", Kind: powershell.Any},
		powershell.Param{Name: "InputObject", Kind: powershell.Any, Piped: true}), func(p *pretended, r *powershell.Call) error {
		a := r.Value("Arguments").(*powershell.Table)
		for as, name := range map[string]string{"binary": "PathName", "account": "StartName"} {
			v, _ := a.Get(name)
			p.service[as] = powershell.Text(v)
		}
		r.Emit(powershell.NewObject("result").With("ReturnValue", int64(0)))
		return nil
	}},
}

// Program is that of powershell.Host.
func (p *pretended) Program(_ context.Context, name string, args []string, out, _ io.Writer) (int, bool) {
	fail := func() (int, bool) { return 5, true }
	at := strings.LastIndex(name, `\`) + 1
	switch program := name[at:]; program {
	case "fltmc.exe":
		if p.user {
			return fail()
		}
	case "softvpi.exe":
		if p.files[name] == "" || p.foreign {
			return 0, false
		}
		if args[0] == "version" {
			fmt.Fprintln(out, "softvpi "+p.files[name])
			break
		}
		if p.step() != nil {
			return fail()
		}
		p.files[args[2]+`\vstat.exe`] = "link"
	case "icacls.exe", "sc.exe":
		if p.step() != nil {
			return fail()
		}
		if args[0] == "delete" {
			p.service = nil
		}
	case "setx.exe":
		if p.step() != nil {
			return fail()
		}
		p.registry[environmentKey+`\\`+args[0]] = args[1]
	case "reg.exe":
		return p.reg(args, out), true
	default:
		return 0, false
	}
	return 0, true
}

// reg is reg.exe: query KEY [/v NAME], add KEY /v NAME /t TYPE /d DATA /f, delete KEY [/v NAME] /f.
func (p *pretended) reg(args []string, out io.Writer) int {
	name := ""
	if i := slices.Index(args, "/v"); i > 0 {
		name = args[i+1]
	}
	if args[0] == "query" {
		fmt.Fprintf(out, "\n%s\n", args[1])
		for k, v := range p.registry {
			if n, ok := strings.CutPrefix(k, args[1]+`\\`); ok && (name == "" || n == name) {
				fmt.Fprintf(out, "    %s    REG_EXPAND_SZ    %s\n", n, v)
			}
		}
		fmt.Fprintln(out)
		return 0
	}
	if p.step() != nil {
		return 1
	}
	if args[0] == "add" {
		p.registry[args[1]+`\\`+name] = args[slices.Index(args, "/d")+1]
		return 0
	}
	maps.DeleteFunc(p.registry, func(k, _ string) bool {
		return strings.HasPrefix(k, args[1]+`\\`) && (name == "" || k == args[1]+`\\`+name)
	})
	return 0
}

// The rest of powershell.Host.

func (p *pretended) Confirm(string) (bool, error) { return false, errors.New("nobody answers") }
func (p *pretended) Create(string, bool) (io.WriteCloser, error) {
	return nil, errors.New("the scripts write no files by themselves")
}
func (p *pretended) Modules() []string { return nil }
func (p *pretended) Getenv(name string) string {
	return map[string]string{"programfiles": `C:\Program Files`, "programdata": `C:\ProgramData`}[strings.ToLower(name)]
}

// run runs a script, and returns its status.
func (p *pretended) run(t *testing.T, name string, args ...string) int {
	t.Helper()
	_, s := script(t, name)
	p.said.Reset()
	p.steps = 0
	in := powershell.New(powershell.Config{Host: p, Out: &p.said, Err: &p.said})
	err := in.Run(t.Context(), s, args...)
	var exit *powershell.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.Status
	case err != nil && p.killAt == 0:
		t.Errorf("%s %q: %v\n%s", name, args, err, &p.said)
	}
	return 0
}
