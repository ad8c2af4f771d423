package main

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/setup"
)

// unpacked returns the text in a file that gzip has packed.
func unpacked(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWriteDebian: the changelog is of the version that is packed, by its time and in Debian's format (deb-changelog(5)), and the
// copyright refers to the licence that each Debian system has.
func TestWriteDebian(t *testing.T) {
	dir := t.TempDir()
	if err := writeDebian(dir, release{"1.2~3", "amd64", time.Unix(1e9, 0)}); err != nil {
		t.Fatal(err)
	}
	want := "softvpi (1.2~3) unstable; urgency=medium\n\n  * Made of the sources of this version.\n\n" +
		" -- SoftVPI <softvpi@users.noreply.github.com>  Sun, 09 Sep 2001 01:46:40 +0000\n"
	if got := unpacked(t, filepath.Join(dir, "changelog.gz")); got != want {
		t.Errorf("the changelog is\n%s\nwant\n%s", got, want)
	}
	b, err := os.ReadFile(filepath.Join(dir, "copyright"))
	if err != nil || !strings.Contains(string(b), "/usr/share/common-licenses/Apache-2.0") {
		t.Errorf("%s, %v", b, err)
	}
}

// TestOf: Debian's packages refer to the system's licence, and the others have it; only Debian's have a changelog and overrides.
func TestOf(t *testing.T) {
	list, err := contents(stage(t, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	own := []string{"share/doc/softvpi/copyright", "share/doc/softvpi/changelog.gz", "share/lintian/overrides/softvpi"}
	for f, want := range map[family][2][]string{debian: {own, {licence}}, others: {{licence}, own}} {
		have := map[string]bool{"": true}
		for _, e := range of(f, list) {
			have[e.to] = true
		}
		for _, name := range want[0] {
			if !have[name] {
				t.Errorf("family %d has no %s", f, name)
			}
		}
		for _, name := range want[1] {
			if have[name] {
				t.Errorf("family %d has %s", f, name)
			}
		}
		if !have["bin/softvpi"] {
			t.Errorf("family %d has no program", f)
		}
	}
}

// TestNotices: each part's licence and notices are in, wherever the Go command has put them; a part without any is not passed on.
func TestNotices(t *testing.T) {
	modules, root := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"github.com/!burnt!sushi/toml@v1.0.0/COPYING": "toml's\n", "example.org/a@v1.0.0/LICENSE-2.0.txt": "a's\n\n",
		"example.org/a@v1.0.0/NOTICE": "a's notice", "example.org/a@v1.0.0/license.go": "package a", "example.org/none@v1.0.0/README": "-"} {
		path := filepath.Join(modules, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "LICENSE"), []byte("Go's"), 0o644); err != nil {
		t.Fatal(err)
	}
	var b bill
	b.add(standardLibrary, "1.26")
	b.add("github.com/BurntSushi/toml", "v1.0.0")
	b.add("example.org/a", "v1.0.0")
	to, from := filepath.Join(t.TempDir(), "notices.txt.gz"), sources{modules, root}
	if err := writeNotices(to, &b, from); err != nil {
		t.Fatal(err)
	}
	text := unpacked(t, to)
	for _, want := range []string{"std 1.26\n\nGo's\n", "github.com/BurntSushi/toml v1.0.0\n\ntoml's\n", "example.org/a v1.0.0\n\na's\n\na's notice\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "package a") {
		t.Error("a source file is among the notices")
	}
	b.add("example.org/none", "v1.0.0")
	if err := writeNotices(to, &b, from); err == nil || !strings.Contains(err.Error(), "example.org/none v1.0.0: no licence") {
		t.Errorf("a module without a licence: %v", err)
	}
}

// TestLater: versions of glibc are numbers, and what is private has none.
func TestLater(t *testing.T) {
	got := []string{"2.4", "2.34", "PRIVATE", "2.2.5", "2.17"}
	slices.SortFunc(got, func(a, b string) int {
		if later(a, b) {
			return 1
		}
		return -1
	})
	if want := []string{"PRIVATE", "2.2.5", "2.4", "2.17", "2.34"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNeededLibc: texts for the linker need nothing, and a damaged library is an error that names it.
func TestNeededLibc(t *testing.T) {
	list, err := contents(stage(t, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := neededLibc(list); v != "" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	i := slices.IndexFunc(list, func(e entry) bool { return e.to == "lib/softvpi/libibverbs.so.1" })
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 9}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list[i].from, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := neededLibc(list); err == nil || !strings.Contains(err.Error(), "libibverbs.so.1") {
		t.Errorf("a damaged library: %v", err)
	}
}

// TestMaintainerScripts: both packages have the same, which know the words of both; a purge removes what systemctl enable has made of the
// units of the system, and what they name; the sockets stop with the service, which they would start again.
func TestMaintainerScripts(t *testing.T) {
	text := func(name string) string {
		b, err := os.ReadFile(maintainerScripts + name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(maintainerScripts + name)
		if err != nil || info.Mode()&0o111 == 0 || !strings.HasPrefix(string(b), "#!/bin/sh\n") {
			t.Errorf("%s is no program: %v", name, err)
		}
		return string(b)
	}
	rpm, _ := packed(t, writeRPM) // whose header is as it is
	for name, words := range map[string]string{"postinst": "\nconfigure | [1-9]*) ", "prerm": "\nremove | 0) ", "postrm": "\npurge | 0)\n"} {
		if s := text(name); !strings.Contains(s, words) {
			t.Errorf("%s knows not both what dpkg and what RPM says:\n%s", name, s)
		}
		if s := text(name); !bytes.Contains(rpm, []byte(s)) {
			t.Errorf("the package for RPM has no %s", name)
		}
	}
	if s := text("prerm"); !strings.Contains(s, "stop 'softvpi-function@*.socket' softvpi.socket softvpi.service ") {
		t.Errorf("a removal stops not both:\n%s", s)
	}
	for _, guarded := range []string{"prerm", "postrm"} {
		if s := text(guarded); !strings.Contains(s, "/usr/local/lib/systemd/system/softvpi.service") {
			t.Errorf("%s takes the units of a setup for its own:\n%s", guarded, s)
		}
	}
	purge := text("postrm")
	units := map[string]string{"softvpi.service": setup.SystemUnit("/usr/bin/softvpi"), "softvpi.socket": setup.SystemSockets,
		"softvpi-function@*.socket": setup.SystemFunctionSocket}
	for unit, text := range units {
		_, target, ok := strings.Cut(text, "\nWantedBy=")
		if link := "/etc/systemd/system/" + strings.TrimSpace(target) + ".wants/" + unit; !ok || !strings.Contains(purge, link) {
			t.Errorf("a purge leaves %s", link)
		}
	}
	for _, dir := range []string{"/var/lib/softvpi", "/run/softvpi", "/etc/softvpi"} {
		if !strings.Contains(purge, dir) {
			t.Errorf("a purge leaves %s", dir)
		}
	}
}

// TestPostrmLinks: what enabled units of the package goes, and what enabled those of a setup beside it stays, with what its driver has.
func TestPostrmLinks(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	script, err := os.ReadFile(maintainerScripts + "postrm")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"purge", "0"} {
		for _, beside := range []bool{false, true} {
			root := t.TempDir()
			wants := filepath.Join(root, "etc/systemd/system/sockets.target.wants")
			for _, dir := range []string{wants, filepath.Join(root, "var/lib/softvpi"), filepath.Join(root, "usr/local/lib/systemd/system")} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, to := range map[string]string{"softvpi.socket": "/usr/lib/systemd/system/softvpi.socket",
				"softvpi-function@red.socket":  "/usr/local/lib/systemd/system/softvpi-function@.socket",
				"softvpi-function@blue.socket": "/lib/systemd/system/softvpi-function@.socket"} {
				if err := os.Symlink(to, filepath.Join(wants, name)); err != nil {
					t.Fatal(err)
				}
			}
			if beside {
				if err := os.WriteFile(filepath.Join(root, "usr/local/lib/systemd/system/softvpi.service"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			// The same script in a system that lies below root; where links point to stays.
			moved := regexp.MustCompile(`(^|[ =\n\t])/(etc|var|run|usr/local)/`).ReplaceAllString(string(script), "${1}"+root+"/$2/")
			for _, dir := range []string{"/etc", "/var/", "/run/", "/usr/local/"} {
				if n := strings.Count(string(script), dir); n != strings.Count(moved, root+dir) {
					t.Fatalf("not all of %s is below the test's root", dir)
				}
			}
			if out, err := exec.Command(sh, "-c", moved, "postrm", word).CombinedOutput(); err != nil {
				t.Fatalf("postrm %s: %v\n%s", word, err, out)
			}
			left, err := os.ReadDir(wants)
			if err != nil || len(left) != 1 || left[0].Name() != "softvpi-function@red.socket" {
				t.Errorf("postrm %s leaves %v, %v", word, left, err)
			}
			_, err = os.Stat(filepath.Join(root, "var/lib/softvpi"))
			if kept := err == nil; kept != (word == "0" || beside) {
				t.Errorf("postrm %s, beside a setup %v: the driver's state is kept: %v", word, beside, kept)
			}
		}
	}
}
