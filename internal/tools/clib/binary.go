package clib

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/os/inputfile"
)

// binaryFile holds what is needed from a program's or library's file.
type binaryFile struct {
	path     string
	machine  elf.Machine
	dynamic  bool
	needed   []string
	rpath    []string // DT_RPATH, which takes precedence over LD_LIBRARY_PATH
	runpath  []string
	imported []elf.ImportedSymbol
}

// maxBinary is the maximum size of a program or library in bytes.
const maxBinary = 4 << 30

// openELF opens an ELF file.
func openELF(path string) (*binaryReader, error) {
	in, err := inputfile.Open(path, maxBinary)
	if err != nil {
		return nil, err
	}
	f, err := elf.NewFile(in)
	if err != nil {
		in.Close()
		return nil, err
	}
	return &binaryReader{f, in}, nil
}

// binaryReader is an open ELF file.
type binaryReader struct {
	*elf.File
	in *inputfile.File
}

// Close closes the file.
func (b *binaryReader) Close() error { return b.in.Close() }

// readBinary reads an ELF file.
func readBinary(path string) (*binaryFile, error) {
	f, err := openELF(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := &binaryFile{path: path, machine: f.Machine, dynamic: f.Section(".dynamic") != nil}
	if !b.dynamic {
		return b, nil
	}
	if b.needed, err = f.ImportedLibraries(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if b.imported, err = f.ImportedSymbols(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	b.rpath, b.runpath = places(f.File, elf.DT_RPATH, path), places(f.File, elf.DT_RUNPATH, path)
	return b, nil
}

// places reads a list of directories.
func places(f *elf.File, tag elf.DynTag, path string) []string {
	texts, err := f.DynString(tag)
	if err != nil {
		return nil // the file has none
	}
	var dirs []string
	for _, t := range texts {
		for d := range strings.SplitSeq(t, ":") {
			dirs = append(dirs, strings.NewReplacer("$ORIGIN", filepath.Dir(path), "${ORIGIN}", filepath.Dir(path)).Replace(d))
		}
	}
	return dirs
}

// hostMachine returns the architecture of programs on this machine, taken from this executable.
func hostMachine() (elf.Machine, error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	f, err := openELF(exe)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Machine, nil
}

// exports returns the symbols that a library defines, as "name@version".
func exports(path string) (map[string]bool, error) {
	f, err := openELF(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m := map[string]bool{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			m[s.Name+"@"+s.Version] = true
		}
	}
	return m, nil
}

// protocol returns the version of the attach protocol that a libibverbs uses. ok is false if it is not
// ours.
func protocol(path string) (major, minor uint16, ok bool) {
	f, err := openELF(path)
	if err != nil {
		return 0, 0, false
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, 0, false
	}
	i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "svpi_protocol" && s.Size == 4 })
	if i < 0 || int(symbols[i].Section) >= len(f.Sections) {
		return 0, 0, false
	}
	s := f.Sections[symbols[i].Section]
	if s.Type == elf.SHT_NOBITS {
		return 0, 0, false
	}
	var b [4]byte
	if _, err := s.ReadAt(b[:], int64(symbols[i].Value-s.Addr)); err != nil {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint16(b[:]), binary.LittleEndian.Uint16(b[2:]), true
}

// glibc is a version of the C library.
type glibc struct{ major, minor int }

func (g glibc) String() string { return fmt.Sprintf("%d.%d", g.major, g.minor) }

func (g glibc) before(h glibc) bool {
	return g.major < h.major || g.major == h.major && g.minor < h.minor
}

// parseGlibc parses a symbol version such as GLIBC_2.34.
func parseGlibc(version string) (g glibc, ok bool) {
	text, ok := strings.CutPrefix(version, "GLIBC_")
	if !ok {
		return g, false
	}
	major, rest, ok := strings.Cut(text, ".")
	minor, _, _ := strings.Cut(rest, ".")
	var err1, err2 error
	g.major, err1 = strconv.Atoi(major)
	g.minor, err2 = strconv.Atoi(minor)
	return g, ok && err1 == nil && err2 == nil
}

// needsGlibc returns the latest version from which a file imports a symbol.
func needsGlibc(b *binaryFile) (most glibc) {
	for _, s := range b.imported {
		if g, ok := parseGlibc(s.Version); ok && most.before(g) {
			most = g
		}
	}
	return most
}

// hasGlibc returns the version of a C library: the latest that it defines.
func hasGlibc(path string) (most glibc, err error) {
	f, err := openELF(path)
	if err != nil {
		return most, err
	}
	defer f.Close()
	versions, err := f.DynamicVersions()
	if err != nil {
		return most, err
	}
	for _, v := range versions {
		if g, ok := parseGlibc(v.Name); ok && most.before(g) {
			most = g
		}
	}
	return most, nil
}

// systemDirs returns the directories where the dynamic linker looks last.
func systemDirs() []string {
	dirs, _ := filepath.Glob("/lib/*-linux-gnu")
	more, _ := filepath.Glob("/usr/lib/*-linux-gnu")
	return slices.Concat(dirs, more, []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"})
}

// resolve finds a library like the dynamic linker would for a file, with dir in LD_LIBRARY_PATH.
func resolve(name string, by *binaryFile, dir string) string {
	rpath := by.rpath
	if len(by.runpath) > 0 {
		rpath = nil
	}
	for _, d := range slices.Concat(rpath, []string{dir}, filepath.SplitList(os.Getenv(libraryPath)), by.runpath, systemDirs()) {
		path := filepath.Join(d, name)
		f, err := openELF(path)
		if err != nil {
			continue
		}
		same := f.Machine == by.machine
		f.Close()
		if same {
			return path
		}
	}
	return ""
}
