package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tools/clib"
)

// TestMain builds the libraries once, into a directory of its own.
func TestMain(m *testing.M) {
	if c := os.Getenv(driverVariable); c != "" {
		os.Exit(beDriver(c))
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "svpi")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if libraries.missing = build(dir); libraries.missing == "" {
		libraries.dir = dir
	}
	return m.Run()
}

// libraries says where they were built, or why they were not.
var libraries struct{ dir, missing string }

func build(dir string) (missing string) {
	for _, tool := range []string{"make", "cc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "there is no " + tool + " to build the C libraries"
		}
	}
	for _, what := range []string{"../../clib", "../../clib/preload"} {
		if out, err := exec.Command("make", "-s", "-C", what, "OUT="+dir).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s", out)
			return "" // dir stays empty, so the tests fail
		}
	}
	return ""
}

// bench is a driver with two adapters, and the environment for programs that use them.
type bench struct {
	t      *testing.T
	socket string
	addrs  [2]netip.Addr
	env    []string
	side   *netns.NsHandle // where programs run; nil: in this namespace
	// patience is how many times longer than usual programs may run; 0: once.
	patience time.Duration
}

func newBench(t *testing.T) *bench {
	t.Helper()
	needLibraries(t)
	cfg := driverbed.Config(t, config.Adapter{Name: "left"}, config.Adapter{Name: "right"})
	if d := driverbed.Start(t, cfg); d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	return benchOf(t, cfg)
}

func needLibraries(t *testing.T) {
	t.Helper()
	if libraries.missing != "" {
		t.Skip(libraries.missing)
	}
	if _, err := os.Stat(filepath.Join(libraries.dir, clib.Preload)); libraries.dir == "" || err != nil {
		t.Fatal("the C libraries could not be built")
	}
}

// benchOf returns the bench of a running driver.
func benchOf(t *testing.T, cfg config.Config) *bench {
	t.Helper()
	settings, err := clib.Settings(libraries.dir, cfg.Socket, clib.Preload)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, socket: cfg.Socket, addrs: [2]netip.Addr{cfg.Adapters[0].Address, cfg.Adapters[len(cfg.Adapters)-1].Address}}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "LD_") && !strings.HasPrefix(e, "SOFTVPI_") {
			b.env = append(b.env, e)
		}
	}
	for _, s := range settings {
		b.env = append(b.env, s.Name+"="+s.Value)
	}
	return b
}

// under returns b for a subtest.
func (b *bench) under(t *testing.T) *bench {
	c := *b
	c.t = t
	return &c
}

// need skips the test if a program is not installed.
func (b *bench) need(programs ...string) {
	b.t.Helper()
	systemtest.Programs(b.t, programs...)
}

// expand replaces ADDR0, ADDR1 and PORT in the words of a command.
func (b *bench) expand(command, port string) []string {
	r := strings.NewReplacer("ADDR0", b.addrs[0].String(), "ADDR1", b.addrs[1].String(), "PORT", port)
	return strings.Fields(r.Replace(command))
}

// program is a running program.
type program struct {
	args []string
	cmd  *exec.Cmd
	out  output
	done chan struct{}
	err  error
}

// output is a program's output so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs a program in the driver's directory, which the test removes with what the program leaves there: libfabric's write where they
// crashed. It ends with the test at the latest.
func (b *bench) start(env []string, args ...string) *program {
	b.t.Helper()
	return b.startAs(func(*exec.Cmd) {}, env, args...)
}

// startAs is start with a function that adapts the command first.
func (b *bench) startAs(adapt func(*exec.Cmd), env []string, args ...string) *program {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), max(b.patience, 1)*2*await.Limit)
	p := &program{args: args, cmd: exec.CommandContext(ctx, args[0], args[1:]...), done: make(chan struct{})}
	p.cmd.Env = append(append([]string{}, b.env...), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.WaitDelay, p.cmd.Dir = time.Second, filepath.Dir(b.socket)
	adapt(p.cmd)
	err := errors.New("no thread")
	within(b.side, func() { err = p.cmd.Start() })
	if err != nil {
		cancel()
		b.t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		cancel()
		close(p.done)
	}()
	b.t.Cleanup(func() { p.stop() })
	return p
}

func (p *program) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *program) stop() {
	if p.running() {
		_ = p.cmd.Process.Kill()
	}
	<-p.done
}

// succeeded fails the test if a program did not exit with status 0.
func (b *bench) succeeded(p *program) {
	b.t.Helper()
	<-p.done
	if p.err != nil {
		b.t.Errorf("%s: %v\n%s", strings.Join(p.args, " "), p.err, p.out.String())
	}
}

// run runs a program until it ends, and returns its output.
func (b *bench) run(env []string, args ...string) string {
	b.t.Helper()
	p := b.start(env, args...)
	b.succeeded(p)
	return p.out.String()
}
