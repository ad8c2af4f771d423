package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/diags"
	"github.com/softvpi/softvpi/internal/tools/ibdump"
	"github.com/softvpi/softvpi/internal/tools/ibstat"
	"github.com/softvpi/softvpi/internal/tools/mft"
	"github.com/softvpi/softvpi/internal/tools/mlx5cmd"
	"github.com/softvpi/softvpi/internal/tools/mlxtool"
	"github.com/softvpi/softvpi/internal/tools/ndcat"
	"github.com/softvpi/softvpi/internal/tools/ndinfo"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
	"github.com/softvpi/softvpi/internal/tools/ndping"
	"github.com/softvpi/softvpi/internal/tools/opensm"
	"github.com/softvpi/softvpi/internal/tools/partman"
	"github.com/softvpi/softvpi/internal/tools/perftuning"
	"github.com/softvpi/softvpi/internal/tools/rping"
	"github.com/softvpi/softvpi/internal/tools/snapshot"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/tools/vfpctrl"
	"github.com/softvpi/softvpi/internal/tools/vlanconfig"
)

// tools maps the names of the tools to the tools.
var tools = makeTools()

func makeTools() map[string]tool.Main {
	m := map[string]tool.Main{
		"MLNX_System_Snapshot": snapshot.Main,
		"MlxStat":              ibstat.MlxStat,
		"flint":                mft.Flint,
		"ibdump":               ibdump.Main,
		"mlx5cmd":              mlx5cmd.Main,
		"mlxburn":              mft.Burn,
		"mlxconfig":            mft.Config,
		"mlxfwreset":           mft.Reset,
		"mlxtool":              mlxtool.Main,
		"mst":                  mft.MST,
		"nd_rping":             rping.Main,
		"opensm":               opensm.Main,
		"ndadapterinfo":        ndinfo.AdapterInfo,
		"ndcat":                ndcat.Main,
		"ndinstall":            ndinfo.Install,
		"part_man":             partman.Main,
		"perf_tuning":          perftuning.Main,
		"vfpctrl":              vfpctrl.Main,
		"vlan_config":          vlanconfig.Main,
	}
	maps.Copy(m, diags.Tools)
	for _, p := range ndping.Programs {
		m[p.Name()] = p.Main
	}
	for _, t := range ndperf.Tests {
		m[t.Name()] = t.Main
	}
	return m
}

// exe is an optional suffix of a tool's name, as in the manuals.
const exe = ".exe"

// toolNamed returns the tool of that name, in any letter case because the manuals also write mlx5Cmd.exe,
// or nil.
func toolNamed(name string) tool.Main {
	name = strings.TrimSuffix(name, exe)
	for n, main := range tools {
		if strings.EqualFold(n, name) {
			return main
		}
	}
	return nil
}

func toolNames() []string {
	var names []string
	for n := range tools {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

type toolsCmd struct {
	List    toolsListCmd    `cmd:"" help:"List the tools."`
	Install toolsInstallCmd `cmd:"" help:"Create a link in DIR for every tool and for softvpi. Nothing but such links is overwritten."`
}

type toolsListCmd struct{}

func (toolsListCmd) Run(s *session) error {
	for _, n := range toolNames() {
		fmt.Fprintln(s.env.Stdout, n)
	}
	return nil
}

type toolsInstallCmd struct {
	Dir string `arg:"" help:"Directory for the links; it is created if it does not exist."`
}

func (c toolsInstallCmd) Run(s *session) error {
	target, err := os.Executable()
	if err != nil {
		return err
	}
	if target, err = filepath.EvalSymlinks(target); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	made, err := installLinks(c.Dir, target, append(toolNames(), "softvpi"))
	fmt.Fprintf(s.env.Stdout, "%d links in %s\n", made, c.Dir)
	return err
}

// installLinks creates a link to target in dir for every name. Existing links to a softvpi are replaced;
// anything else with that name is kept and causes an error.
func installLinks(dir, target string, names []string) (made int, err error) {
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	for _, n := range names {
		if e := installLink(filepath.Join(dir, n+suffix), target); e != nil {
			err = errors.Join(err, e)
			if errors.As(e, new(*os.LinkError)) || errors.As(e, new(*os.PathError)) {
				break // the system refuses the directory, not just one name
			}
			continue
		}
		made++
	}
	return made, err
}

func installLink(path, target string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	case isItself(info, target): // DIR is where the program itself is
		return nil
	case !ours(path, info, target):
		return fmt.Errorf("%s exists and is not a link to softvpi; it stays as it is", path)
	default:
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if err := os.Symlink(target, path); err == nil || runtime.GOOS != "windows" {
		return err
	}
	return os.Link(target, path) // Windows refuses symbolic links to ordinary users
}

// isItself reports whether info belongs to the program at target, not to a link.
func isItself(info os.FileInfo, target string) bool {
	t, err := os.Stat(target)
	return err == nil && info.Mode()&os.ModeSymlink == 0 && os.SameFile(info, t)
}

// ours reports whether the file at path is a link created by an earlier install.
func ours(path string, info os.FileInfo, target string) bool {
	if info.Mode()&os.ModeSymlink != 0 {
		to, err := os.Readlink(path)
		return err == nil && calledAs([]string{to}) == "softvpi"
	}
	return isItself(info, target)
}
