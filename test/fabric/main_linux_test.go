package fabric

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tools/diags"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// toolVariable makes this program one of our tools, which thereby has an environment of its own while other tests run.
const toolVariable = "SOFTVPI_TEST_TOOL"

// libraryDir is where libibumad is built, once.
var libraryDir string

func TestMain(m *testing.M) {
	if name := os.Getenv(toolVariable); name != "" {
		os.Exit(diags.Tools[name](context.Background(), tool.Env{Name: name, Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout,
			Stderr: os.Stderr}))
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	var err error
	if libraryDir, err = os.MkdirTemp("", "umad"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(libraryDir)
	return m.Run()
}

var buildLibrary = sync.OnceValue(func() error {
	out, err := exec.Command("make", "-s", "-C", "../../clib", "OUT="+libraryDir, filepath.Join(libraryDir, "libibumad.so.3")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
})

// library returns the directory with our libibumad.
func library(t *testing.T) string {
	t.Helper()
	systemtest.Programs(t, "make", "cc") // which build libibumad
	if err := buildLibrary(); err != nil {
		t.Fatalf("libibumad: %v", err)
	}
	return libraryDir
}

// own runs one of our tools at a node, with more variables in its environment.
func (d *datagrams) own(variables []string, node, name string, args ...string) (out, errs string, status int) {
	d.t.Helper()
	self, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	c := d.at(node, self, args...)
	c.Env = append(append(c.Env, toolVariable+"="+name), variables...)
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	timer := time.AfterFunc(4*await.Limit, func() {
		if c.Process != nil {
			_ = c.Process.Kill()
		}
	})
	defer timer.Stop()
	var failed *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &failed) {
		d.t.Fatal(err)
	}
	return o.String(), e.String(), c.ProcessState.ExitCode()
}
