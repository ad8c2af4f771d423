package clib

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/os/inputfile"
)

// maxLibraries is how many libraries of a program are examined.
const maxLibraries = 500

// program checks a program's file.
func (d *Doctor) program(name string) {
	path, err := lookPath(name)
	if err != nil {
		d.say("program", Wrong, "%v", err)
		return
	}
	b, err := readBinary(path)
	switch {
	case err != nil:
		d.script(path, err)
		return
	case !b.dynamic:
		d.say("program", Wrong, "%s is linked statically: it has the verbs library inside, or none; link it dynamically", path)
		return
	}
	if info, err := os.Stat(path); err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		d.say("program", Wrong, "%s is set-uid or set-gid: the dynamic linker ignores LD_LIBRARY_PATH and LD_PRELOAD; run a copy without that bit", path)
		return
	}
	if d.dir == "" {
		return // nothing to compare with
	}
	files, missing := d.closure(b)
	d.linked(path, files)
	for _, m := range missing {
		d.say("program", Wrong, "%s, which %s needs, is not found: install its package", m.name, m.by)
	}
	d.symbols(files)
}

// script reports what a file is that is no ELF file.
func (d *Doctor) script(path string, err error) {
	var head [512]byte
	n := 0
	if f, e := inputfile.Open(path, maxBinary); e == nil {
		n, _ = io.ReadFull(f, head[:])
		f.Close()
	}
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	if bytes.HasPrefix(line, []byte("#!")) {
		d.say("program", Note, "%s is a script for %s: examine the program that it starts", path, strings.TrimSpace(string(line[2:])))
		return
	}
	d.say("program", Wrong, "%s is not a program: %v", path, err)
}

type absent struct{ name, by string }

// closure returns a program with all of its libraries as the dynamic linker would find them with ours
// first.
func (d *Doctor) closure(b *binaryFile) (files []*binaryFile, missing []absent) {
	seen := map[string]bool{}
	files = []*binaryFile{b}
	for i := 0; i < len(files) && len(files) < maxLibraries; i++ {
		for _, name := range files[i].needed {
			if seen[name] {
				continue
			}
			seen[name] = true
			path := resolve(name, files[i], d.dir)
			if path == "" {
				missing = append(missing, absent{name, files[i].path})
				continue
			}
			if lib, err := readBinary(path); err == nil {
				files = append(files, lib)
			}
		}
	}
	return files, missing
}

// linked reports which verbs libraries a program gets.
func (d *Doctor) linked(path string, files []*binaryFile) {
	var ours []string
	for _, f := range files[1:] {
		name := filepath.Base(f.path)
		if name != verbsLibrary && name != cmLibrary {
			continue
		}
		if filepath.Dir(f.path) != d.dir && !has(d.dir, name) {
			continue // already reported
		}
		if filepath.Dir(f.path) != d.dir {
			d.say("program", Wrong, "%s gets %s by a path of its own (RPATH), which goes before LD_LIBRARY_PATH: remove it with patchelf --remove-rpath", path, f.path)
			continue
		}
		ours = append(ours, name)
	}
	slices.Sort(ours)
	switch {
	case len(ours) > 0:
		d.say("program", Fine, "%s gets %s from %s", path, strings.Join(ours, " and "), d.dir)
	case !slices.ContainsFunc(d.found, func(f Finding) bool { return f.Check == "program" }):
		d.say("program", Note, "%s is not linked to %s or %s: it sees the device only if it loads one later, as UCX and libfabric do", path,
			verbsLibrary, cmLibrary)
	}
}

// symbols checks everything that a program and its libraries import from the verbs libraries.
func (d *Doctor) symbols(files []*binaryFile) {
	count, wrong := 0, false
	for _, lib := range []string{verbsLibrary, cmLibrary} {
		has, err := exports(filepath.Join(d.dir, lib))
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				d.say("symbols", Wrong, "%v", err)
			}
			continue
		}
		for _, f := range files {
			if filepath.Dir(f.path) == d.dir {
				continue
			}
			for _, s := range f.imported {
				if s.Library != lib {
					continue
				}
				count++
				if !has[s.Name+"@"+s.Version] {
					wrong = true
					d.say("symbols", Wrong, "%s imports %s@%s, which %s does not have: the program is for a later version of it", f.path,
						s.Name, s.Version, lib)
				}
			}
		}
	}
	if !wrong && count > 0 {
		d.say("symbols", Fine, "all %d that it imports are there", count)
	}
}
