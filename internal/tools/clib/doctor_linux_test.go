package clib

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

// verdict returns the worst verdict among the findings of a check, with its text; -1 if there is none.
func verdict(t *testing.T, found []Finding, check string) (v Verdict, text string) {
	t.Helper()
	v = -1
	for _, f := range found {
		if f.Check == check && f.Verdict > v {
			v, text = f.Verdict, f.Text
		}
	}
	return v, text
}

func TestDoctorNamesWhatIsMissing(t *testing.T) {
	t.Setenv(directoryVariable, "")
	dir := t.TempDir()
	d := Doctor{Socket: filepath.Join(dir, "none"), Version: driverbed.Version}
	found := d.Examine(t.Context(), "no-such-program")
	for check, want := range map[string]string{"libraries": "make clib", "driver": "softvpi up", "program": "no-such-program"} {
		if v, text := verdict(t, found, check); v != Wrong || !strings.Contains(text, want) {
			t.Errorf("%s: %v, %q, want wrong, with %q", check, v, text, want)
		}
	}
	if v, _ := verdict(t, found, "attach"); v != -1 {
		t.Error("there is a finding about attaching, but no driver to attach to")
	}
}

func TestDoctorOfARunningDriver(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "one"})
	if drv := driverbed.Start(t, cfg); drv.NoAttach() != "" {
		t.Skip(drv.NoAttach())
	}
	d := Doctor{Socket: cfg.Socket, Version: driverbed.Version}
	found := d.Examine(t.Context(), "")
	for _, check := range []string{"driver", "adapters"} {
		if v, text := verdict(t, found, check); v != Fine {
			t.Errorf("%s: %v, %s; want fine", check, v, text)
		}
	}
	if v, text := verdict(t, found, "attach"); v == Wrong || v == -1 {
		t.Errorf("attach: %v, %s; want a finding that is not wrong", v, text)
	}
	d.Version = "another"
	if v, text := verdict(t, d.Examine(t.Context(), ""), "driver"); v != Note || !strings.Contains(text, driverbed.Version) {
		t.Errorf("a driver of another version: %v, %s; want a note with %s", v, text, driverbed.Version)
	}
}

func TestDoctorOfPrograms(t *testing.T) {
	t.Setenv(directoryVariable, libraries(t, t.TempDir(), verbsLibrary, cmLibrary, Preload)) // files that are not libraries
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh -e\necho\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("text"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, program string
		want          Verdict
		says          string
	}{
		{"a script", script, Note, "/bin/sh -e"},
		{"a text", text, Wrong, "is not a program"},
		{"a directory", t.TempDir(), Wrong, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := (&Doctor{Socket: filepath.Join(t.TempDir(), "none")}).Examine(t.Context(), c.program)
			if v, text := verdict(t, found, "program"); v != c.want || !strings.Contains(text, c.says) {
				t.Errorf("%v, %s; want %v, %q", v, text, c.want, c.says)
			}
			if v, text := verdict(t, found, "libraries"); v != Wrong || !strings.Contains(text, "cannot be read") {
				t.Errorf("files that are not libraries: %v, %s; want wrong, with \"cannot be read\"", v, text)
			}
		})
	}
}
