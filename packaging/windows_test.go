package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/powershell"
)

// TestZip: what is in the file for Windows, all below one directory with the version, with the bill and notices of its own program.
func TestZip(t *testing.T) {
	b, _ := packed(t, writeZip)
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range z.File {
		got = append(got, f.Name)
		if f.Modified.Unix() != 1e9 {
			t.Errorf("%s is of %v", f.Name, f.Modified)
		}
	}
	want := []string{"softvpi-1/LICENSE", "softvpi-1/SoftVPI/SoftVPI.format.ps1xml", "softvpi-1/SoftVPI/SoftVPI.psd1", "softvpi-1/SoftVPI/SoftVPI.psm1",
		"softvpi-1/docs/go.md", "softvpi-1/install.ps1", "softvpi-1/notices.txt", "softvpi-1/softvpi.cdx.json", "softvpi-1/softvpi.exe", "softvpi-1/uninstall.ps1"}
	if !slices.Equal(got, want) {
		t.Errorf("it has\n%q, want\n%q", got, want)
	}
	f, err := z.Open("softvpi-1/softvpi.cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := make([]byte, 100)
	if n, _ := f.Read(text); string(text[:n]) != "windows/softvpi.cdx.json" {
		t.Errorf("the bill is that of %q", text[:n])
	}
}

// TestZip_OthersWithout: nothing of the file for Windows is in the other packages, and without a program for it there is none.
func TestZip_OthersWithout(t *testing.T) {
	list, err := contents(stage(t, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []family{debian, others} {
		for _, e := range of(f, list) {
			if strings.HasPrefix(filepath.Base(filepath.Dir(e.from)), "windows") || ofImage(e) && e.in == windows {
				t.Errorf("family %d has %s", f, e.to)
			}
		}
	}
	dir := stage(t, "")
	if err := os.Remove(filepath.Join(dir, windowsProgram)); err != nil {
		t.Fatal(err)
	}
	if list, err = contents(dir, nil); err != nil {
		t.Fatal(err)
	}
	if err := writeZip(nil, release{}, list); err == nil || !strings.Contains(err.Error(), "no program for Windows") {
		t.Error(err)
	}
}

// TestOfWindows: what Windows could not use is not packed.
func TestOfWindows(t *testing.T) {
	for _, c := range []struct{ name, body, why string }{
		{"softvpi.exe", "\x7fELF" + strings.Repeat("\x00", 200), "no program of Windows"},
		{"x.ps1", "'a'\n'ä'", "not ASCII at byte 5"},
		{"x.psm1", "\xef\xbb\xbf'ä'", ""},
		{"README.md", "ä", ""},
	} {
		err := ofWindows(entry{to: c.name}, []byte(c.body))
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.name, err, c.why)
		}
	}
}

// script returns one of the scripts for Windows, as it is and parsed.
func script(t *testing.T, name string) (string, *powershell.Script) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("windows", name))
	if err != nil {
		t.Fatal(err)
	}
	s, err := powershell.Parse(string(b))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := ofWindows(entry{to: name}, b); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return string(b), s
}

// TestScripts_Native: programs of Windows are run without redirected errors, which Windows PowerShell 5.1 takes as failures of the script
// where $ErrorActionPreference is Stop, and without quotation marks in their words, which it loses.
func TestScripts_Native(t *testing.T) {
	for _, name := range []string{"install.ps1", "uninstall.ps1"} {
		text, _ := script(t, name)
		for i, line := range strings.Split(text, "\n") {
			if strings.Contains(line, "2>") || strings.Contains(line, "Invoke-Program") && strings.Contains(line, "`\"") {
				t.Errorf("%s, line %d: %s", name, i+1, line)
			}
		}
	}
}
