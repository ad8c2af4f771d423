package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/setup"
)

// entry is one thing that a package installs.
type entry struct {
	to   string // path below /usr, with slashes
	from string // file that is copied there; empty: a link
	link string // what a link points to, relative to its directory
	mode os.FileMode
	in   family
}

// family are the packages in which something is: Debian has rules of its own for licences and changes.
type family uint8

const (
	all     family = iota
	debian         // alone
	others         // all but Debian's
	windows        // the zip file for Windows, which has nothing of the others'
	images         // the image for containers alone
)

// of returns what is in the packages of a family.
func of(f family, list []entry) (out []entry) {
	for _, e := range list {
		if e.in == all || e.in == f {
			out = append(out, e)
		}
	}
	return out
}

// ofDebian is where the files are that only its packages have.
var ofDebian = map[string]string{
	"copyright": "share/doc/softvpi/copyright", "changelog.gz": "share/doc/softvpi/changelog.gz", "overrides": "share/lintian/overrides/softvpi",
}

// licence is the whole text; Debian's packages refer to that of the system.
const licence = "share/doc/softvpi/LICENSE"

// required is what no package is without, beside the programs.
var required = []string{
	"lib/systemd/user/softvpi.service", "lib/systemd/user/softvpi.socket", "lib/systemd/system/softvpi.service",
	"lib/systemd/system/softvpi.socket", "lib/systemd/system/softvpi-function@.socket", "lib/sysusers.d/softvpi.conf", "lib/systemd/catalog/softvpi.catalog",
	"share/man/man1/softvpi.1.gz",
	"share/man/man1/softvpi-device-plugin.1.gz", licence, "share/doc/softvpi/copyright", "share/doc/softvpi/changelog.gz",
	"share/powershell/Modules/SoftVPI/SoftVPI.psd1", "share/powershell/Modules/SoftVPI/SoftVPI.psm1",
	"share/powershell/Modules/SoftVPI/SoftVPI.format.ps1xml",
}

// contents returns what the packages install, in order: from a directory in which make package has put the program, the C libraries
// if they were built, manual pages, completion, the service and documents, and the names of the tools.
func contents(stage string, tools []string) ([]entry, error) {
	list := []entry{
		{to: "bin/softvpi", from: filepath.Join(stage, "softvpi"), mode: 0o755},
		{to: "bin/softvpi-device-plugin", from: filepath.Join(stage, "softvpi-device-plugin"), mode: 0o755},
		{to: "bin/softvpi-dra-driver", from: filepath.Join(stage, "softvpi-dra-driver"), mode: 0o755, in: images}, // 53 MB, for pods
	}
	for _, name := range tools {
		dir, target := "bin/", "softvpi"
		if slices.Contains(setup.OfOthers, name) {
			dir, target = "lib/softvpi/tools/", "../../../bin/softvpi"
		}
		list = append(list, entry{to: dir + name, link: target})
	}
	for _, d := range []struct {
		from, to string
		mode     os.FileMode
		required bool
	}{
		{"clib", "lib/softvpi", 0o644, false},
		{"man", "share/man/man1", 0o644, true},
		{"bash", "share/bash-completion/completions", 0o644, true},
		{"zsh", "share/zsh/vendor-completions", 0o644, true},
		{"fish", "share/fish/vendor_completions.d", 0o644, true},
		{"service", "lib/systemd/user", 0o644, true},
		{"system", "lib/systemd/system", 0o644, true},
		{"sysusers", "lib/sysusers.d", 0o644, true},
		{"catalog", "lib/systemd/catalog", 0o644, true},
		{"powershell", "share/powershell/Modules/SoftVPI", 0o644, true},
		{"doc", "share/doc/softvpi", 0o644, true},
	} {
		files, err := filesIn(filepath.Join(stage, d.from))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 && d.required {
			return nil, fmt.Errorf("%s has no files", filepath.Join(stage, d.from))
		}
		for _, f := range files {
			if name, _, _ := strings.Cut(f, "."); d.from == "man" && slices.Contains(setup.OfOthers, name) {
				list = append(list, entry{to: "lib/softvpi/man/man1/" + f, from: filepath.Join(stage, d.from, f), mode: d.mode})
				continue
			}
			e := entry{to: d.to + "/" + f, from: filepath.Join(stage, d.from, f), mode: d.mode}
			if e.to == licence {
				e.in = others
			}
			list = append(list, e)
		}
	}
	more, err := windowsContents(stage)
	if err != nil {
		return nil, err
	}
	list = append(list, more...)
	for name, to := range ofDebian {
		if from := filepath.Join(stage, "debian", name); exists(from) {
			list = append(list, entry{to: to, from: from, mode: 0o644, in: debian})
		}
	}
	for _, name := range tools { // one script completes all
		if slices.Contains(setup.OfOthers, name) {
			continue
		}
		list = append(list, entry{to: "share/bash-completion/completions/" + name, link: "softvpi"})
	}
	for _, path := range required {
		if !slices.ContainsFunc(list, func(e entry) bool { return e.to == path }) {
			return nil, fmt.Errorf("%s has nothing for /usr/%s", stage, path)
		}
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.to, b.to) })
	for i := 1; i < len(list); i++ {
		if list[i].to == list[i-1].to {
			return nil, fmt.Errorf("/usr/%s is installed twice", list[i].to)
		}
	}
	return list, nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// filesIn returns the files below a directory, by their paths in it; none if it does not exist.
func filesIn(dir string) (out []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if os.IsNotExist(err) && path == dir {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		in, err := filepath.Rel(dir, path)
		out = append(out, filepath.ToSlash(in))
		return err
	})
	return out, err
}
