// Package systemtest marks tests of whole systems: those that start processes, browsers or programs of others, or make
// network or mount namespaces. Where they lie beside tests within one process, such a test begins with
//
//	systemtest.Mark(t)
//
// and go test -short leaves it out. What lies below the directory test needs no mark. make test-unit runs what is
// neither, several packages at a time; make test-system runs the rest, SYSTEMJOBS packages at a time (see package marked). A
// test that needs the machine for itself says so:
//
//	systemtest.Mark(t, systemtest.Alone)
//
// and runs, also below the directory test, when all that may run beside others is done. go test ./... runs everything.
package systemtest

import (
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// tests are the names of those that have been marked.
var tests sync.Map

// Need is what a test needs beside processes and namespaces.
type Need int

// Alone is the machine: no test of another package runs at the same time. Whoever changes what there is once of in a machine (its
// large pages, its clock) or compares times needs it. Addresses, ports, interfaces, sockets and files are no reason: those of a test are
// its own (packages loopback and namespace).
const Alone Need = 1

// Mark marks the test that begins with it. Subtests belong to their test. Package marked reads the needs from the source.
func Mark(t *testing.T, _ ...Need) {
	t.Helper()
	tests.Store(t.Name(), true)
	if testing.Short() {
		t.Skip("a test of the system, which -short leaves out and make test-system runs")
	}
}

// Required fails a test that has no mark. Whatever helps tests to start processes or to make namespaces calls it, so
// that no such test is counted among those of one process. Benchmarks need no mark.
func Required(t testing.TB) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if _, marked := tests.Load(name); !marked && strings.HasPrefix(name, "Test") {
		t.Fatalf("%s starts processes or makes namespaces: it has to begin with systemtest.Mark(t)", name)
	}
}

// Programs skips a test for which one of these programs is not installed.
func Programs(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s, which is not installed", name)
		}
	}
}
