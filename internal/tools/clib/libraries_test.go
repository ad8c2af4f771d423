package clib

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/os/paths"
)

// libraries makes a directory with empty files of these names and returns it.
func libraries(t *testing.T, dir string, files ...string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSettings(t *testing.T) {
	with := libraries(t, t.TempDir(), verbsLibrary, cmLibrary, Preload)
	all := libraries(t, t.TempDir(), verbsLibrary, cmLibrary, Preload, Memory)
	without := libraries(t, t.TempDir(), verbsLibrary, cmLibrary)
	for _, c := range []struct {
		name                           string
		dir, socket                    string
		preloaded                      []string
		libraryPath, preload, variable string
		want                           []string
	}{
		{name: "nothing is set", dir: with, preloaded: []string{Preload}, want: []string{"LD_LIBRARY_PATH=" + with,
			"LD_PRELOAD=" + filepath.Join(with, Preload)}},
		{name: "without the preloaded library", dir: with, want: []string{"LD_LIBRARY_PATH=" + with}},
		{name: "where it was not built", dir: without, preloaded: []string{Memory, Preload}, want: []string{"LD_LIBRARY_PATH=" + without}},
		{name: "behind others", dir: without, libraryPath: "/a:/b", want: []string{"LD_LIBRARY_PATH=" + without + ":/a:/b"}},
		{name: "two of them", dir: all, preloaded: []string{Memory, Preload},
			want: []string{"LD_LIBRARY_PATH=" + all, "LD_PRELOAD=" + filepath.Join(all, Preload) + " " + filepath.Join(all, Memory)}},
		{name: "a second time", dir: with, preloaded: []string{Preload}, libraryPath: with + ":/a",
			preload: "/x.so:" + filepath.Join(with, Preload),
			want:    []string{"LD_LIBRARY_PATH=" + with + ":/a", "LD_PRELOAD=" + filepath.Join(with, Preload) + " /x.so"}},
		{name: "a socket", dir: without, socket: "/run/x", variable: "/run/y", want: []string{"LD_LIBRARY_PATH=" + without,
			"SOFTVPI_SOCKET=/run/x"}},
		{name: "the socket of the environment", dir: without, variable: "/run/y", want: []string{"LD_LIBRARY_PATH=" + without,
			"SOFTVPI_SOCKET=/run/y"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(libraryPath, c.libraryPath)
			t.Setenv(preload, c.preload)
			t.Setenv(paths.SocketVariable, c.variable)
			settings, err := Settings(c.dir, c.socket, c.preloaded...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range settings {
				got = append(got, s.Name+"="+s.Value)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A directory whose name has a character that separates the entries of LD_PRELOAD is refused: the dynamic linker
// knows no way to quote it (ld.so(8)).
func TestSettingsRefuseDirectoriesThatTheLinkerCannotTake(t *testing.T) {
	for _, dir := range []string{"/with space", "/with:colon"} {
		if _, err := Settings(dir, "", Preload); err == nil {
			t.Errorf("%q was accepted", dir)
		}
	}
}

func TestShells(t *testing.T) {
	s := Setting{"A", "it's a !"}
	if got, want := s.Export(), `export A='it'\''s a !'`; got != want {
		t.Errorf("sh: %s, want %s", got, want)
	}
	if got, want := s.Setenv(), `setenv A 'it'\''s a \!'`; got != want {
		t.Errorf("csh: %s, want %s", got, want)
	}
}

func TestFind(t *testing.T) {
	dir := libraries(t, t.TempDir(), verbsLibrary)
	t.Setenv(directoryVariable, dir)
	if got, err := Find(); err != nil || got != dir {
		t.Errorf("Find returns %q, %v; want %q", got, err, dir)
	}
	t.Setenv(directoryVariable, t.TempDir())
	if _, err := Find(); err == nil || !strings.Contains(err.Error(), directoryVariable) {
		t.Errorf("a directory without the libraries: %v; want an error that names %s", err, directoryVariable)
	}
	t.Setenv(directoryVariable, "")
	if _, err := Find(); err == nil || !strings.Contains(err.Error(), "make clib") {
		t.Errorf("beside the test's own executable: %v; want an error with \"make clib\"", err)
	}
}

func TestGlibcVersions(t *testing.T) {
	for _, c := range []struct {
		text string
		want glibc
		ok   bool
	}{
		{"GLIBC_2.34", glibc{2, 34}, true}, {"GLIBC_2.2.5", glibc{2, 2}, true}, {"GLIBC_PRIVATE", glibc{}, false},
		{"IBVERBS_1.1", glibc{}, false}, {"GLIBC_2", glibc{2, 0}, false}, {"", glibc{}, false},
	} {
		if got, ok := parseGlibc(c.text); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: got %v, %v; want %v, %v", c.text, got, ok, c.want, c.ok)
		}
	}
	if !(glibc{2, 9}).before(glibc{2, 34}) || (glibc{3, 0}).before(glibc{2, 34}) || (glibc{2, 34}).before(glibc{2, 34}) {
		t.Error("versions are not compared as numbers: want 2.9 before 2.34, and not 3.0 or 2.34")
	}
}
