package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// runDir names the directory that image.sh filled for this run; without it the tests are skipped.
const runDir = "SOFTVPI_INTEROP_RUN"

// inNamespace is set in the process that runs the tests.
const inNamespace = "SOFTVPI_INTEROP_NAMESPACE"

// TestMain runs the tests in a child process with a network namespace of its own. The namespace has no name, so
// nothing is left behind however the child ends.
func TestMain(m *testing.M) {
	if os.Getenv(runDir) == "" || os.Getenv(inNamespace) != "" {
		os.Exit(m.Run())
	}
	exe, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	child := exec.Command(exe, os.Args[1:]...)
	child.Env = append(os.Environ(), inNamespace+"=1")
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err = child.Run()
	if e := new(exec.ExitError); errors.As(err, &e) {
		os.Exit(max(e.ExitCode(), 1))
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// site returns the directory with the guest and our programs, and skips the test if there is none.
func site(t *testing.T) string {
	dir := os.Getenv(runDir)
	if dir == "" {
		t.Skip("needs the guest that make interop builds")
	}
	return dir
}
