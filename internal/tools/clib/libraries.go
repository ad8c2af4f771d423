// Package clib implements `softvpi verbs`: it finds the C libraries that unmodified verbs programs load
// instead of the distribution's, sets up programs' environment accordingly, and says why a program does
// not see the device.
package clib

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// directoryVariable names the environment variable with the directory of the libraries, if they are not
// where Find looks.
const directoryVariable = "SOFTVPI_CLIB"

// The files of the libraries.
const (
	verbsLibrary = "libibverbs.so.1"
	cmLibrary    = "librdmacm.so.1"
	Preload      = "libsoftvpi-preload.so"
	Memory       = "libsoftvpi-memory.so"
	// Datagrams is the library for management datagrams.
	Datagrams = "libibumad.so.3"
)

// Variables of the dynamic linker.
const (
	libraryPath = "LD_LIBRARY_PATH"
	preload     = "LD_PRELOAD"
)

// errPlatform says that there are no such programs on this system.
var errPlatform = fmt.Errorf("unmodified verbs programs are for Linux, this is %s; Go programs use the packages verbs, nd and rdmanet",
	runtime.GOOS)

// Supported returns errPlatform if this system has no such programs.
func Supported() error {
	if runtime.GOOS != "linux" {
		return errPlatform
	}
	return nil
}

// ErrNotBuilt says that a library does not exist.
var ErrNotBuilt = errors.New("not built")

// Find returns the directory of the libraries: SOFTVPI_CLIB, otherwise clib next to the executable,
// otherwise lib/softvpi next to its directory (/usr/local/bin/softvpi: /usr/local/lib/softvpi).
func Find() (string, error) {
	if dir := os.Getenv(directoryVariable); dir != "" {
		if !has(dir, verbsLibrary) {
			return "", tool.Usagef("%s is %q; allowed: the directory of %s", directoryVariable, dir, verbsLibrary)
		}
		return filepath.Abs(dir)
	}
	exe, err := os.Executable()
	if err == nil {
		exe, err = filepath.EvalSymlinks(exe)
	}
	if err != nil {
		return "", err
	}
	places := []string{filepath.Join(filepath.Dir(exe), "clib"), filepath.Join(filepath.Dir(filepath.Dir(exe)), "lib", "softvpi")}
	for _, dir := range places {
		if has(dir, verbsLibrary) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: there is no %s in %s: make clib builds it, and %s names another directory", ErrNotBuilt, verbsLibrary,
		strings.Join(places, " or "), directoryVariable)
}

// Have returns an error if a file of the libraries was not built.
func Have(dir, file string) error {
	if !has(dir, file) {
		return fmt.Errorf("%w: there is no %s in %s: make clib builds it", ErrNotBuilt, file, dir)
	}
	return nil
}

func has(dir, file string) bool {
	info, err := os.Stat(filepath.Join(dir, file))
	return err == nil && info.Mode().IsRegular()
}

// Setting is an environment variable.
type Setting struct{ Name, Value string }

// Settings returns the variables for a program that inherits this process's environment: the contents of
// LD_LIBRARY_PATH and LD_PRELOAD are kept after what is added. socket is that of the driver; empty: as in
// the environment. Files to preload that were not built are left out.
func Settings(dir, socket string, preloaded ...string) ([]Setting, error) {
	if strings.ContainsAny(dir, ": \t\n") {
		return nil, fmt.Errorf("the libraries are in %q, which the dynamic linker cannot use: it separates directories at colons and libraries at spaces", dir)
	}
	s := []Setting{{libraryPath, ahead(dir, os.Getenv(libraryPath), ":", func(r rune) bool { return r == ':' || r == ';' })}}
	before := os.Getenv(preload)
	list := before
	for _, file := range preloaded {
		if has(dir, file) {
			list = ahead(filepath.Join(dir, file), list, " ", func(r rune) bool { return r == ':' || r == ' ' })
		}
	}
	if list != before {
		s = append(s, Setting{preload, list})
	}
	if socket == "" {
		socket = os.Getenv(paths.SocketVariable)
	}
	if socket == "" {
		return s, nil
	}
	socket, err := filepath.Abs(socket)
	return append(s, Setting{paths.SocketVariable, socket}), err
}

// ahead puts first at the beginning of a list and removes other occurrences.
func ahead(first, list, separator string, separates func(rune) bool) string {
	rest := strings.FieldsFunc(list, separates)
	rest = slices.DeleteFunc(rest, func(s string) bool { return s == first })
	return strings.Join(append([]string{first}, rest...), separator)
}

// Export returns the setting as a command for sh.
func (s Setting) Export() string { return "export " + s.Name + "=" + quoted(s.Value) }

// Setenv returns the setting as a command for csh, where an exclamation mark means history even in quotes.
func (s Setting) Setenv() string {
	return "setenv " + s.Name + " " + strings.ReplaceAll(quoted(s.Value), "!", `\!`)
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// environment returns this process's environment with the settings.
func environment(settings []Setting) []string {
	env := os.Environ()
	for _, s := range settings {
		env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, s.Name+"=") })
		env = append(env, s.Name+"="+s.Value)
	}
	return env
}

// Run replaces this process by the program in args, with the settings. It returns only on failure.
func Run(args []string, settings []Setting) (status int, err error) {
	path, err := lookPath(args[0])
	if err == nil {
		err = become(path, args, environment(settings))
	}
	if errors.Is(err, os.ErrNotExist) {
		return 127, err // like sh and env
	}
	return 126, err
}
