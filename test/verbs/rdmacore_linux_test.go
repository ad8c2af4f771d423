package verbs

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

// rdma-core's own tests, as Debian has them in the package rdma-core; they need python3-pyverbs.
const (
	suitePath   = "/usr/share/doc/rdma-core/tests"
	suitePython = "/usr/bin/python3" // the one that Debian's module is for
)

// TestRdmaCore runs rdma-core's own tests on adapters of each kind. None may fail, and those that are skipped are those
// that testdata/rdmacore names.
func TestRdmaCore(t *testing.T) {
	t.Run("loopback", func(t *testing.T) { localhost(t).rdmaCore("loopback") })
	t.Run("Ethernet", func(t *testing.T) {
		one, _ := hosts(t)
		one.rdmaCore("Ethernet")
	})
	t.Run("InfiniBand", func(t *testing.T) {
		b := newIPoIB(t)
		b.run(nil, "sh", "-c", "until "+suitePython+" -c \"$0\"; do sleep 0.1; done 2>&1", listens)
		b.rdmaCore("InfiniBand")
	})
}

// listens succeeds once a program can listen at the address of the IPoIB interface.
const listens = `from pyverbs.cmid import AddrInfo, CMID
import pyverbs.cm_enums as ce
import pyverbs.enums as e
from pyverbs.qp import QPCap, QPInitAttr
CMID(creator=AddrInfo(src="` + ipoibAddress + `", src_service="7471", port_space=ce.RDMA_PS_TCP, flags=ce.RAI_PASSIVE),
     qp_init_attr=QPInitAttr(qp_type=e.IBV_QPT_RC, cap=QPCap()))`

// localhost returns a bench with an adapter at 127.0.0.1, the address at which rdma-core's tests look for one on the loopback
// interface. It has a network namespace of its own, as there is only one such address.
func localhost(t *testing.T) *bench {
	t.Helper()
	needLibraries(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	sides, err := namespaces(t)
	if err != nil {
		t.Skipf("no network namespaces: %v", err)
	}
	cfg := driverbed.Config(t, config.Adapter{Name: "host", Address: netip.AddrFrom4([4]byte{127, 0, 0, 1})})
	startIn(t, &sides[0], cfg)
	b := benchOf(t, cfg)
	b.side = &sides[0]
	return b
}

// rdmaCore runs rdma-core's tests on the first device, whose adapter is of a kind.
func (b *bench) rdmaCore(kind string) {
	b.t.Helper()
	list := readSkips(b.t)
	ran := b.runSuite()
	b.figures("%s", list.summary(kind, ran))
	for _, complaint := range list.judge(kind, ran) {
		b.t.Error(complaint)
	}
}

// runSuite runs rdma-core's tests on the first device, with these options, and returns what became of each.
func (b *bench) runSuite(options ...string) outcomes {
	b.t.Helper()
	dir := b.suite()
	b.largePages()
	runner, err := filepath.Abs("testdata/rdmacore.py")
	if err != nil {
		b.t.Fatal(err)
	}
	report := filepath.Join(b.t.TempDir(), "report")
	b.patience = 5
	words := append([]string{suitePython, runner, report, "--dev", "softvpi0", "--port", "1", "--gid", "0", "-v"}, options...)
	p := b.startAs(func(c *exec.Cmd) { c.Dir = dir }, nil, words...)
	<-p.done
	ran, err := readReport(report)
	if err != nil || len(ran) == 0 || (p.err != nil && len(ran.failed()) == 0) {
		b.t.Fatalf("%v, %v, %d results:\n%s", err, p.err, len(ran), p.out.String())
	}
	if len(ran.failed()) > 0 {
		b.t.Log(p.out.String())
	}
	return ran
}

// largePagesFile is the number of large pages of 2 MB that the system has set aside.
const largePagesFile = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"

// largePages sets some large pages aside for the time of the test, where it may and there are none: some of the tests use
// them.
func (b *bench) largePages() {
	b.t.Helper()
	had, err := os.ReadFile(largePagesFile)
	if err != nil || strings.TrimSpace(string(had)) != "0" || os.WriteFile(largePagesFile, []byte("8\n"), 0o644) != nil {
		return
	}
	b.t.Cleanup(func() {
		if err := os.WriteFile(largePagesFile, had, 0o644); err != nil {
			b.t.Errorf("the number of large pages could not be put back: %v", err)
		}
	})
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
