package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/softvpi/softvpi/internal/cmdlets"
	"github.com/softvpi/softvpi/internal/completion"
	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/manual"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/setup"
	"github.com/softvpi/softvpi/internal/tools/clib"
)

// setupItems returns what is installed. All but the libraries in C comes from the program itself.
func setupItems(ctx context.Context, prefix string, p *setup.Properties) ([]setup.Item, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return nil, err
	}
	list := []setup.Item{{Path: "bin/softvpi", Source: exe, Mode: 0o755}}
	if plugin := filepath.Join(filepath.Dir(exe), "softvpi-device-plugin"); isFile(plugin) {
		list = append(list, setup.Item{Path: "bin/softvpi-device-plugin", Source: plugin, Mode: 0o755})
	}
	libraries, err := libraryItems()
	if err != nil {
		return nil, err
	}
	list = append(list, libraries...)
	list = append(list, unitItems(prefix)...)
	if p.WMI {
		module, err := moduleItems()
		if err != nil {
			return nil, err
		}
		list = append(list, module...)
	}
	if p.DriversOnly {
		return list, nil
	}
	for _, n := range toolNames() {
		i := setup.Item{Path: "bin/" + n, Link: "softvpi"}
		if slices.Contains(setup.OfOthers, n) {
			i = setup.Item{Path: "lib/softvpi/tools/" + n, Link: "../../../bin/softvpi"}
		}
		list = append(list, i)
	}
	pages, err := pageItems(ctx)
	return append(list, pages...), err
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// wrongMachineError says that a library is for another machine than the program.
type wrongMachineError struct {
	file string
	has  elf.Machine
}

func (e *wrongMachineError) Error() string {
	return fmt.Sprintf("%s is for %v, and this program for %s", e.file, e.has, runtime.GOARCH)
}

// machines are the names that Go has for what it runs on.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// libraryItems returns the libraries in C, if there are any beside the program.
func libraryItems() (list []setup.Item, err error) {
	dir, err := clib.Find()
	if errors.Is(err, clib.ErrNotBuilt) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.so*"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		e, err := elf.Open(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		e.Close()
		if want, ok := machines[runtime.GOARCH]; ok && e.Machine != want {
			return nil, &wrongMachineError{f, e.Machine}
		}
		list = append(list, setup.Item{Path: "lib/softvpi/" + filepath.Base(f), Source: f, Mode: 0o644})
	}
	return list, nil
}

// moduleItems returns the module for PowerShell, where PowerShell on Linux looks for modules.
func moduleItems() (list []setup.Item, err error) {
	dir, err := os.MkdirTemp("", "softvpi-setup-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := cmdlets.New(nil, nil).WriteModule(dir); err != nil {
		return nil, err
	}
	for _, f := range cmdlets.ModuleFiles {
		b, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			return nil, err
		}
		list = append(list, setup.Item{Path: "share/powershell/Modules/SoftVPI/" + f, Content: b, Mode: 0o644})
	}
	return list, nil
}

// completions are the files in which shells look for how to complete the line of a program.
var completions = map[string]string{"bash": "share/bash-completion/completions/softvpi", "zsh": "share/zsh/site-functions/_softvpi",
	"fish": "share/fish/vendor_completions.d/softvpi.fish"}

// pageItems returns manual pages and completion.
func pageItems(ctx context.Context) (list []setup.Item, err error) {
	pages, err := manualPages(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range pages {
		var b bytes.Buffer
		_, _ = p.WriteTo(&b)
		dir := "share/man/man1"
		if slices.Contains(setup.OfOthers, p.Name) {
			dir = "lib/softvpi/man/man1"
		}
		list = append(list, setup.Item{Path: fmt.Sprintf("%s/%s.%d", dir, p.Name, manual.Command), Content: b.Bytes(), Mode: 0o644})
	}
	for _, shell := range completion.Shells {
		var b bytes.Buffer
		if err := completion.Write(&b, shell, "softvpi", append([]string{"softvpi"}, toolNames()...)); err != nil {
			return nil, err
		}
		list = append(list, setup.Item{Path: completions[shell], Content: b.Bytes(), Mode: 0o644})
	}
	return list, nil
}

// unitItems returns the service, which has the path of the program, and its sockets.
func unitItems(prefix string) []setup.Item {
	return []setup.Item{
		{Path: "share/systemd/user/softvpi.service", Content: []byte(setup.Unit(filepath.Join(prefix, "bin", "softvpi"))), Mode: 0o644},
		{Path: "share/systemd/user/softvpi.socket", Content: []byte(setup.Sockets), Mode: 0o644},
	}
}

// driverRuns reports whether a driver answers at the socket.
func (r *setupRun) driverRuns() (bool, error) {
	_, err := driver.NewAdmin(paths.Socket()).Process(r.ctx)
	if r.ctx.Err() != nil {
		return false, r.ctx.Err()
	}
	return err == nil, nil
}

// loadDriver runs the installed driver, unless one runs, waits until programs can attach, and tunes its adapters if that is asked for.
func (r *setupRun) loadDriver(p *setup.Properties) {
	running, err := r.driverRuns()
	if err != nil {
		r.warn(setup.NoDevice, err)
		return
	}
	program := filepath.Join(r.prefix, "bin", "softvpi")
	if !running {
		if err := r.child(p.LoadTimeout, program, "up", "--background"); err != nil {
			r.warn(setup.NoDevice, err)
			return
		}
		defer func() {
			if err := r.child(p.LoadTimeout, program, "down"); err != nil {
				r.warn(setup.NoDevice, fmt.Errorf("the driver does not end: %w", err))
			}
		}()
	}
	if err := r.child(time.Hour, program, "wait", "--timeout", p.LoadTimeout.String()); err != nil {
		r.warn(setup.NoDevice, err)
		return
	}
	r.say("driver: it loads")
	if !p.PerfCheck {
		return
	}
	st, err := driver.NewAdmin(paths.Socket()).Status(r.ctx)
	if err != nil {
		r.warn(setup.NoDevice, err)
		return
	}
	for i := range st.Adapters {
		if err := r.child(p.LoadTimeout, program, "perf_tuning", "-s", "-c1", st.Adapters[i].Name); err != nil {
			r.env.Errorf("performance tuning of %s: %s", st.Adapters[i].Name, oneLine(err))
			continue
		}
		r.say("performance tuning: %s, for the traffic of a single port (PERFCHECK=1)", st.Adapters[i].Name)
	}
}

// child runs the installed program, whose output goes into the log, for so long at most. The error has the last line of it.
func (r *setupRun) child(longest time.Duration, program string, args ...string) error {
	r.note("run %s %s", program, strings.Join(args, " "))
	ctx, stop := context.WithTimeout(r.ctx, longest)
	defer stop()
	c := exec.CommandContext(ctx, program, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // what it has started ends with it
	out, err := c.CombinedOutput()
	_, _ = r.log.Write(out)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: it did not end within %v (MT_DRIVER_LOAD_TIMEOUT)", strings.Join(args, " "), longest)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return fmt.Errorf("%s: %w", lines[len(lines)-1], err)
}

// ownPatterns are the names of what a driver leaves in its state directory, but dumps: directories behind what is in them.
var ownPatterns = []string{"registry.db*", "events/*.events", "events", "LogFiles/*.log", "LogFiles/Mlnx/Mellanox-System*",
	"LogFiles/Mlnx", "LogFiles", "lastwords.*", "driver.log*", "driver.lock",
	"api-token", "MLNX_WinOF.log0"}

// ownFiles returns the configuration of a driver, and what is in its state directory under its names, but the log.
func ownFiles(config, state, log string) (list []string) {
	if isFile(config) {
		list = append(list, config)
	}
	for _, pattern := range ownPatterns {
		found, _ := filepath.Glob(filepath.Join(state, filepath.FromSlash(pattern)))
		for _, f := range found {
			if info, err := os.Lstat(f); err == nil && f != log && (info.Mode().IsRegular() || info.IsDir()) {
				list = append(list, f)
			}
		}
	}
	return list
}
