package verbs

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// rdma-core's own tests, as Debian has them in the package rdma-core; they need python3-pyverbs.
const (
	suitePath   = "/usr/share/doc/rdma-core/tests"
	suitePython = "/usr/bin/python3" // the one that Debian's module is for
)

// How many of version 44's 273 tests pass at least: those of libibverbs, and those of librdmacm, which need a network
// interface. Four more ask for IBV_QP_CREATE_BLOCK_SELF_MCAST_LB at random, which there is not, and are then skipped.
const suiteVerbs, suiteManager = 91, 10

// TestRdmaCore runs rdma-core's own tests on a device. None may fail; those of features that the device does not have
// are skipped.
func TestRdmaCore(t *testing.T) {
	t.Run("loopback", func(t *testing.T) { newBench(t).rdmaCore(suiteVerbs) })
	t.Run("Ethernet", func(t *testing.T) {
		one, _ := hosts(t)
		one.rdmaCore(suiteVerbs + suiteManager)
	})
}

// rdmaCore runs rdma-core's tests on the first device, of which at least so many must pass.
func (b *bench) rdmaCore(expected int) {
	b.t.Helper()
	dir := b.suite()
	p := b.startAs(func(c *exec.Cmd) { c.Dir = dir }, nil, suitePython, "run_tests.py", "--dev", "softvpi0", "--port", "1", "--gid", "0",
		"-v")
	<-p.done
	out := p.out.String()
	r, err := suiteResult(out)
	if err != nil {
		b.t.Fatalf("%v, %v:\n%s", err, p.err, out)
	}
	b.figures("rdma-core's tests (%s): %d passed, %d failed, %d skipped", b.t.Name(), r.passed, r.failed, r.skipped)
	if r.failed > 0 {
		b.t.Errorf("%d tests failed:\n%s", r.failed, out[strings.Index(out, "======"):])
	}
	if r.passed < expected {
		b.t.Errorf("%d tests passed, want %d or more:\n%s", r.passed, expected, out)
	}
}

// suite unpacks the tests into a directory and returns it; where they are not installed the test is skipped.
func (b *bench) suite() string {
	b.t.Helper()
	if err := exec.Command(suitePython, "-c", "import pyverbs.device").Run(); err != nil {
		b.t.Skip("python3-pyverbs is not installed")
	}
	files, err := os.ReadDir(suitePath)
	if err != nil {
		b.t.Skipf("rdma-core is not installed with its documentation: %v", err)
	}
	dir := filepath.Join(b.t.TempDir(), "tests") // its name is part of the tests' names
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	for _, f := range files {
		if err := unpack(filepath.Join(suitePath, f.Name()), filepath.Join(dir, strings.TrimSuffix(f.Name(), ".gz"))); err != nil {
			b.t.Fatal(err)
		}
	}
	return dir
}

// unpack copies a file, which is compressed if its name ends in .gz.
func unpack(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	in := io.Reader(f)
	if strings.HasSuffix(from, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, text, 0o644)
}

// results are the figures of a run.
type results struct{ passed, failed, skipped int }

var (
	suiteRan  = regexp.MustCompile(`(?m)^Ran (\d+) tests? in `)
	suiteEnd  = regexp.MustCompile(`(?m)^(?:OK|FAILED)(?: \((.*)\))?$`)
	suiteCase = regexp.MustCompile(`(failures|errors|skipped)=(\d+)`)
)

// suiteResult reads the summary of a run of Python's unittest.
func suiteResult(out string) (r results, err error) {
	ran, end := suiteRan.FindStringSubmatch(out), suiteEnd.FindStringSubmatch(out)
	if ran == nil || end == nil {
		return r, fmt.Errorf("no summary of the tests")
	}
	fmt.Sscan(ran[1], &r.passed)
	for _, c := range suiteCase.FindAllStringSubmatch(end[1], -1) {
		var n int
		fmt.Sscan(c[2], &n)
		if c[1] == "skipped" {
			r.skipped += n
		} else {
			r.failed += n
		}
	}
	r.passed -= r.failed + r.skipped
	return r, nil
}

// TestSuiteResult: a summary of Python's unittest is read as it is meant.
func TestSuiteResult(t *testing.T) {
	for _, c := range []struct {
		out  string
		want results
	}{
		{"Ran 273 tests in 1.2s\n\nOK (skipped=180)\n", results{93, 0, 180}},
		{"Ran 273 tests in 1.2s\n\nFAILED (failures=3, errors=10, skipped=179)\n", results{81, 13, 179}},
		{"Ran 1 test in 0.1s\n\nOK\n", results{1, 0, 0}},
	} {
		if got, err := suiteResult(c.out); err != nil || got != c.want {
			t.Errorf("%q: %+v, %v; want %+v", c.out, got, err, c.want)
		}
	}
	if _, err := suiteResult("Segmentation fault\n"); err == nil {
		t.Error("no error without a summary")
	}
}

// figuresVariable names the directory in which the figures of other people's tests are left; make test prints them.
const figuresVariable = "SOFTVPI_TEST_FIGURES"

// figures reports the figures of a run.
func (b *bench) figures(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	b.t.Log(line)
	dir := os.Getenv(figuresVariable)
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(b.t.Name(), "/", "-")), []byte(line+"\n"), 0o644); err != nil {
		b.t.Fatal(err)
	}
}
