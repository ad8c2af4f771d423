package interop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/test/interop/remote"
)

// guest is a running virtual machine with an rxe device.
type guest struct {
	dir     string // directory of the image
	mtu     int
	wire    string // QEMU's side of the segment
	port    string // unix socket that a port of virtio-serial, port 1, is connected to; empty: there is none
	cards   []card // beside those of the segment and of commands: eth2, eth3 and so on
	capture string // every frame on the segment, as a pcap file
	initrd  string // the file in dir: withFio, or without it, which starts sooner
	qemu    *exec.Cmd
	monitor io.Writer // QEMU's
	ended   chan struct{}
	console string
	stderr  bytes.Buffer
	driver  string // socket of the running driver; empty: there is none
	// stationsOfOurs are the addresses that SoftVPI had beside those of tap0.
	stationsOfOurs []netip.Addr

	stopping atomic.Bool // the test ends the machine
}

// Root file systems of guests, made by image.sh.
const (
	withoutFio = "initrd"
	withFio    = "initrd.bulky"
	withOurs   = "initrd.own" // softvpi and its C libraries
)

// boot starts a guest on a segment of its own, until the test ends.
func boot(t *testing.T, mtu int, initrd string) *guest {
	t.Helper()
	return begun(t, &guest{mtu: mtu, wire: tapWire, initrd: initrd})
}

// tapWire is QEMU's side of tap0.
const tapWire = "tap,id=n0,ifname=tap0,script=no,downscript=no,vnet_hdr=off"

// card is a network card of a guest beside the usual two: its MAC, and where its frames go: the path of a datagram socket, whose peer, the
// card's own, has ".peer" behind that, or the name of a TAP, which has one without a slash.
type card struct{ mac, wire string }

// arguments are QEMU's for the card. Without a speed Linux's bonding driver takes the link for one that is down.
func (c card) arguments(i int) []string {
	wire := fmt.Sprintf("tap,id=u%d,ifname=%s,script=no,downscript=no,vnet_hdr=off", i, c.wire)
	if strings.Contains(c.wire, "/") {
		wire = fmt.Sprintf("dgram,id=u%d,local.type=unix,local.path=%s.peer,remote.type=unix,remote.path=%[2]s", i, c.wire)
	}
	return []string{"-netdev", wire, "-device", fmt.Sprintf("virtio-net-pci,netdev=u%d,mac=%s,romfile=,speed=10000,duplex=full", i, c.mac)}
}

// bootOn is boot with another segment than tap0: what QEMU's -netdev, n0, is to be; and with further cards.
func bootOn(t *testing.T, mtu int, wire string, cards ...card) *guest {
	t.Helper()
	return begun(t, &guest{mtu: mtu, wire: wire, cards: cards, initrd: withoutFio})
}

// begun starts a guest, until the test ends.
func begun(t *testing.T, g *guest) *guest {
	t.Helper()
	segment(t, g.mtu, g.wire)
	g.dir, g.capture, g.console = site(t), filepath.Join(t.TempDir(), "tap0.pcap"), filepath.Join(t.TempDir(), "console")
	g.start(t)
	t.Cleanup(func() {
		g.stop()
		if said, err := os.ReadFile(g.console); t.Failed() && err == nil {
			t.Logf("the guest's console:\n%s", said)
		}
	})
	return g
}

// accelerations are tried in this order. One that exists may still fail to run an ordinary kernel (nested under some
// hypervisors), so what counts is a guest that answers. The choice is kept for later runs.
func (g *guest) accelerations() []string {
	if b, err := os.ReadFile(filepath.Join(g.dir, "accel")); err == nil {
		return []string{strings.TrimSpace(string(b))}
	}
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return []string{"tcg"}
	}
	f.Close()
	return []string{"kvm", "tcg"}
}

// bootLimit is how long a guest may take to start on an emulated processor. It takes some 10 s of the machine's.
var bootLimit = 3 * await.Limit

func (g *guest) start(t *testing.T) {
	t.Helper()
	for _, accel := range g.accelerations() {
		if err := g.launch(accel); err != nil {
			t.Fatal(err)
		}
		wait := bootLimit
		if accel == "kvm" {
			wait /= 6
		}
		if g.answers(wait) {
			_ = os.WriteFile(filepath.Join(g.dir, "accel"), []byte(accel), 0o644)
			return
		}
		g.stop()
	}
	console, _ := os.ReadFile(g.console)
	t.Fatalf("the guest does not answer; it said\n%s%s", g.stderr.Bytes(), console)
}

func (g *guest) launch(accel string) error {
	machine := []string{"-accel", "kvm", "-cpu", "host"}
	if accel == "tcg" {
		machine = []string{"-accel", "tcg,thread=multi", "-cpu", "max,la57=off,pcid=off"}
	}
	// Without vnet headers neither side of tap0 passes frames that have yet to be segmented: the capture shows
	// what would be on a wire.
	args := append(machine, "-M", "pc", "-smp", "2", "-m", "768", "-nodefaults", "-display", "none", "-no-reboot",
		"-kernel", filepath.Join(g.dir, "kernel"), "-initrd", filepath.Join(g.dir, g.initrd),
		"-append", fmt.Sprintf("console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on tsc=reliable net.ifnames=0 "+
			"rcupdate.rcu_cpu_stall_suppress=1 unknown_nmi_panic panic_print=0x40 interop.mtu=%d interop.addr=%s/24,%s/64", g.mtu, theirs.v4, theirs.v6),
		"-serial", "file:"+g.console, "-monitor", "stdio", "-device", "virtio-rng-pci",
		"-netdev", g.wire,
		"-device", "virtio-net-pci,netdev=n0,mac=52:54:00:99:00:02,romfile=",
		"-netdev", "tap,id=n1,ifname=ctl0,script=no,downscript=no",
		"-device", "virtio-net-pci,netdev=n1,mac=52:54:00:98:00:02,romfile=",
		"-object", "filter-dump,id=d0,netdev=n0,file="+g.capture)
	if g.port != "" {
		args = append(args, "-device", "virtio-serial-pci", "-chardev", "socket,id=p0,server=off,reconnect=1,path="+g.port,
			"-device", "virtserialport,chardev=p0,name=softvpi")
	}
	for i, c := range g.cards {
		args = append(args, c.arguments(i)...)
	}
	g.qemu = exec.Command("qemu-system-x86_64", args...)
	g.qemu.Stderr = &g.stderr
	g.qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if g.monitor, err = g.qemu.StdinPipe(); err != nil {
		return err
	}
	if err := g.qemu.Start(); err != nil {
		return err
	}
	g.ended = make(chan struct{})
	g.stopping.Store(false)
	go func(q *exec.Cmd, ended chan struct{}) {
		_ = q.Wait()
		if !g.stopping.Load() {
			g.died()
		}
		close(ended)
	}(g.qemu, g.ended)
	return nil
}

// died ends everything at once if the guest's kernel has panicked: each exchange would wait a minute for it. It prints what tells
// more of the case: the kernel's words, what this process was doing, and the last frames. rxe_rcv, for one, gives back a queue pair
// that it has not looked up if a datagram over IPv6 is too short for a packet.
func (g *guest) died() {
	console, err := os.ReadFile(g.console)
	if err != nil || !bytes.Contains(console, []byte("Kernel panic")) {
		return
	}
	fmt.Fprintf(os.Stderr, "interop: the guest's kernel panicked\n%s\n", console)
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for line := range strings.Lines(string(stacks)) {
		if strings.Contains(line, "/test/interop.") {
			fmt.Fprint(os.Stderr, line)
		}
	}
	frames, err := lastFrames(g.capture, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	for _, f := range frames {
		fmt.Fprintf(os.Stderr, "%x\n", f[:min(len(f), 96)])
	}
	os.Exit(1)
}

// stands has the kernel of a guest that does not answer say where its processors stand: it panics, which ends everything (died).
func (g *guest) stands(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(g.monitor, "nmi\n"); err != nil {
		t.Logf("QEMU has ended: %v", err)
		return
	}
	select {
	case <-g.ended:
	case <-time.After(await.Limit):
		t.Log("QEMU does not answer either: an NMI has no effect")
	}
}

// answers waits until the guest accepts commands.
func (g *guest) answers(limit time.Duration) bool {
	// A guest that took long to start takes long to answer as well.
	for begin := time.Now(); time.Since(begin) < limit; {
		select {
		case <-g.ended:
			return false
		default:
		}
		if conn, err := net.DialTimeout("tcp", "10.98.0.2:1", max(200*time.Millisecond, time.Since(begin)/10)); err == nil {
			conn.Close()
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// stop ends the machine as if its plug were pulled.
func (g *guest) stop() {
	g.stopping.Store(true)
	_ = g.qemu.Process.Kill()
	<-g.ended
}

// run is a program in the guest.
type run struct {
	*remote.Process
	name string
	mu   sync.Mutex
	out  bytes.Buffer
	more chan struct{} // holds a token if there is new output
}

// program starts a program in the guest.
func (g *guest) program(t testing.TB, args ...string) *run {
	t.Helper()
	conn, err := net.DialTimeout("tcp", "10.98.0.2:1", await.Limit)
	if err != nil {
		g.stands(t)
		t.Fatal(err)
	}
	r := &run{name: strings.Join(args, " "), more: make(chan struct{}, 1)}
	r.Process, err = remote.Start(conn, r.output, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Kill() })
	return r
}

func (r *run) output(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.Write(b)
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// text returns what the program has printed.
func (r *run) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

// line returns the next line that the program prints.
func (r *run) line(ctx context.Context) (string, error) {
	for {
		r.mu.Lock()
		if i := bytes.IndexByte(r.out.Bytes(), '\n'); i >= 0 {
			line := string(r.out.Next(i + 1)[:i])
			r.mu.Unlock()
			return line, nil
		}
		r.mu.Unlock()
		select {
		case <-r.more:
		case <-r.Done():
			if strings.Contains(r.text(), "\n") {
				continue
			}
			return "", fmt.Errorf("%s has ended: %s", r.name, r.text())
		case <-ctx.Done():
			return "", fmt.Errorf("%s: %w, printed %q", r.name, ctx.Err(), r.text())
		}
	}
}

// ends waits until the program ends, and returns its status.
func (r *run) ends(t testing.TB, limit time.Duration) (status int, err error) {
	t.Helper()
	select {
	case <-r.Done():
	case <-time.After(limit):
		t.Fatalf("%s has not ended after %v; it printed\n%s", r.name, limit, r.text())
	}
	return r.Wait()
}

// succeeds waits until the program ends, and checks that its status is 0.
func (r *run) succeeds(t testing.TB, limit time.Duration) {
	t.Helper()
	if status, err := r.ends(t, limit); status != 0 || err != nil {
		t.Fatalf("%s: status %d, %v; it printed\n%s", r.name, status, err, r.text())
	}
}

const rpingRace = "rdma_get_cm_event: Bad file descriptor"

// rpingSucceeds waits until an rping client of the guest ends. Such a client destroys its event channel while one of
// its own threads still reads events from it, and therefore now and then ends with status 255 although it has done
// everything.
func (r *run) rpingSucceeds(t testing.TB, limit time.Duration) {
	t.Helper()
	status, err := r.ends(t, limit)
	raced := status == 255 && strings.Contains(r.text(), rpingRace)
	if status != 0 && !raced || err != nil {
		t.Fatalf("%s: status %d, %v; it printed\n%s", r.name, status, err, r.text())
	}
}

// sh runs a shell command in the guest, which must succeed.
func (g *guest) sh(t testing.TB, command string) string {
	t.Helper()
	r := g.program(t, "bash", "-c", command)
	r.succeeds(t, programLimit)
	return r.text()
}
