package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// stage makes a directory as package.sh lays one out.
func stage(t *testing.T, without string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range []string{"softvpi", "softvpi-device-plugin", "softvpi-dra-driver", "clib/libibverbs.so.1", "man/softvpi.1.gz",
		"man/softvpi-device-plugin.1.gz", "man/ibstat.1.gz", "bash/softvpi", "zsh/_softvpi",
		"fish/softvpi.fish", "service/softvpi.service", "service/softvpi.socket", "system/softvpi.service", "system/softvpi.socket",
		"system/softvpi-function@.socket", "sysusers/softvpi.conf", "catalog/softvpi.catalog", "powershell/SoftVPI.psd1",
		"powershell/SoftVPI.psm1", "powershell/SoftVPI.format.ps1xml", "doc/LICENSE", "doc/docs/go.md", "debian/copyright",
		"debian/changelog.gz", "debian/overrides", "windows/install.ps1",
		"windows/uninstall.ps1", "windows/notices.txt", "windows/softvpi.cdx.json", "doc/notices.txt.gz", "doc/softvpi.cdx.json"} {
		if f == without {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), []byte(f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, windowsProgram), append([]byte{0x64, 0x86}, make([]byte, 200)...), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestContents_NamesOfOthers: what another package installs by the same name is not where that package has it.
func TestContents_NamesOfOthers(t *testing.T) {
	list, err := contents(stage(t, ""), []string{"vstat", "ibstat"})
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]entry{}
	for _, e := range list {
		at[e.to] = e
	}
	for _, want := range []string{"bin/softvpi", "bin/vstat", "lib/softvpi/tools/ibstat", "lib/softvpi/man/man1/ibstat.1.gz",
		"share/man/man1/softvpi.1.gz", "lib/softvpi/libibverbs.so.1", "share/doc/softvpi/docs/go.md",
		"share/bash-completion/completions/vstat", "lib/systemd/user/softvpi.service", "lib/systemd/user/softvpi.socket",
		"lib/systemd/system/softvpi.service", "lib/systemd/system/softvpi.socket", "lib/systemd/system/softvpi-function@.socket", "lib/sysusers.d/softvpi.conf",
		"lib/systemd/catalog/softvpi.catalog",
		"share/powershell/Modules/SoftVPI/SoftVPI.psd1", "share/powershell/Modules/SoftVPI/SoftVPI.psm1",
		"share/powershell/Modules/SoftVPI/SoftVPI.format.ps1xml"} {
		if _, ok := at[want]; !ok {
			t.Errorf("/usr/%s is not installed", want)
		}
	}
	for _, never := range []string{"bin/ibstat", "share/man/man1/ibstat.1.gz", "share/bash-completion/completions/ibstat"} {
		if _, ok := at[never]; ok {
			t.Errorf("/usr/%s is installed, which infiniband-diags has", never)
		}
	}
	for _, e := range list {
		if e.link == "" {
			continue
		}
		if to := path.Join(path.Dir(e.to), e.link); at[to].from == "" {
			t.Errorf("%s is a link to %s, which is no file of the package", e.to, to)
		}
	}
}

// TestContents_Required: nothing is packed without what it needs; the C libraries may be missing.
func TestContents_Required(t *testing.T) {
	if _, err := contents(stage(t, "clib/libibverbs.so.1"), nil); err != nil {
		t.Error("without C libraries: ", err)
	}
	for _, f := range []string{"service/softvpi.service", "service/softvpi.socket", "system/softvpi.service", "system/softvpi.socket",
		"sysusers/softvpi.conf", "catalog/softvpi.catalog", "doc/LICENSE", "debian/copyright", "man/softvpi.1.gz", "powershell/SoftVPI.psm1",
		"powershell/SoftVPI.format.ps1xml"} {
		if _, err := contents(stage(t, f), nil); err == nil {
			t.Errorf("a package without %s is made", f)
		}
	}
}

// packed returns a package of a stage, as a format is written, and what it contains.
func packed(t *testing.T, write func(*os.File, release, []entry) error) ([]byte, []entry) {
	t.Helper()
	list, err := contents(stage(t, ""), []string{"vstat"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := write(f, release{"1", "amd64", time.Unix(1e9, 0)}, list); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return b, list
}

// TestPackages_SameBytes: packages of the same contents are the same, whenever and as whatever user they are made.
func TestPackages_SameBytes(t *testing.T) {
	for name, write := range map[string]func(*os.File, release, []entry) error{"deb": writeDeb, "rpm": writeRPM, "tar": writeTar,
		"image": writeImage, "zip": writeZip} {
		a, _ := packed(t, write)
		if b, _ := packed(t, write); !bytes.Equal(a, b) || len(a) < 100 {
			t.Errorf("%s: %d and %d bytes, which differ", name, len(a), len(b))
		}
	}
}

// TestTar: every file is in one directory that says which version it is, and is nobody's in particular.
func TestTar(t *testing.T) {
	b, list := packed(t, writeTar)
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	list = of(others, list)
	n := 0
	for r := tar.NewReader(z); ; n++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != "softvpi-1/"+list[n].to || h.Uid != 0 || h.Uname != "" || h.ModTime.Unix() != 1e9 {
			t.Errorf("entry %d is %+v", n, h)
		}
	}
	if n != len(list) {
		t.Errorf("%d entries, want %d", n, len(list))
	}
}

// TestOwnDirectories: directories that other packages have, too, are not this one's, and each of its own is there once.
func TestOwnDirectories(t *testing.T) {
	list, err := contents(stage(t, ""), []string{"ibstat"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"lib/softvpi", "lib/softvpi/man", "lib/softvpi/man/man1", "lib/softvpi/tools", "share/doc/softvpi", "share/doc/softvpi/docs",
		"share/powershell/Modules/SoftVPI"}
	if got := ownDirectories(of(others, list)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
