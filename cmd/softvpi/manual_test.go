package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestMan_AllPages: every command and tool has a page, which says what it is for and how it is used.
func TestMan_AllPages(t *testing.T) {
	dir := t.TempDir()
	if status, _, stderr := call(t, "softvpi", "man", "--directory", dir); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, name := range append(toolNames(), "softvpi", "softvpi-up", "softvpi-link-set", "softvpi-reg") {
		b, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		page := string(b)
		_, summary, _ := strings.Cut(page, ".SH NAME\n")
		summary, _, _ = strings.Cut(summary, "\n")
		_, what, _ := strings.Cut(summary, ` \- `)
		if len(what) < 10 || len(what) > 160 || strings.HasSuffix(what, ":") {
			t.Errorf("%s is said to be %q", name, what)
		}
		if !strings.Contains(page, ".SH SYNOPSIS\n.nf\n") {
			t.Errorf("%s: no synopsis", name)
		}
		if strings.Contains(page, dir) || strings.Contains(page, os.TempDir()) {
			t.Errorf("%s names a directory of this machine", name)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "softvpi-bench-tcp.1")); err == nil {
		t.Error("a hidden command has a page")
	}
}

// TestMan_OnePage: by the name of a command, of its page or of a tool, in any letter case; another name is refused.
func TestMan_OnePage(t *testing.T) {
	for _, name := range []string{"link set", "softvpi-link-set", "LINK SET"} {
		if status, out, _ := call(t, "softvpi", "man", name); status != 0 || !strings.Contains(out, `softvpi\-link\-set \- Set what a link`) {
			t.Errorf("man %q: status %d, %q", name, status, out)
		}
	}
	if status, out, _ := call(t, "softvpi", "man", "vstat"); status != 0 || !strings.Contains(out, `\-\-hca`) {
		t.Errorf("man vstat: status %d, %q", status, out)
	}
	for _, args := range [][]string{{}, {"nothing"}, {"nothing", "--directory", t.TempDir()}} {
		if status, out, stderr := call(t, "softvpi", append([]string{"man"}, args...)...); status != 2 || out != "" || stderr == "" {
			t.Errorf("man %q: status %d, %q, %q", args, status, out, stderr)
		}
	}
}

// TestMan_Renders: groff takes each page without a complaint.
func TestMan_Renders(t *testing.T) {
	systemtest.Mark(t)
	systemtest.Programs(t, "groff")
	dir := t.TempDir()
	if status, _, stderr := call(t, "softvpi", "man", "--directory", dir); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "*.1"))
	c := exec.Command("groff", append([]string{"-man", "-Tascii", "-ww", "-Wbreak"}, pages...)...)
	var complaints strings.Builder
	c.Stderr = &complaints
	if err := c.Run(); err != nil || complaints.Len() > 0 {
		t.Errorf("%v: %s", err, complaints.String())
	}
}
