package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// container is a process with its own PID, user and network namespaces, for as long as a test lasts.
type container struct {
	t   *testing.T
	pid string // of its first process
}

func newContainer(t *testing.T) *container {
	t.Helper()
	p := started(t, "container", exec.Command("unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sleep", "infinity"))
	outer, c := fmt.Sprint(p.cmd.Process.Pid), &container{t: t}
	await.Eventually(t, "a container runs", func() bool {
		b, _ := os.ReadFile("/proc/" + outer + "/task/" + outer + "/children")
		c.pid = strings.TrimSpace(string(b))
		name, _ := os.ReadFile("/proc/" + c.pid + "/comm")
		return c.pid != "" && string(name) == "sleep\n"
	})
	c.does("ip link set lo up")
	return c
}

// words are those of a command that is to run inside.
func (c *container) words(command ...string) []string {
	return append([]string{"nsenter", "-t", c.pid, "-U", "-n", "-p", "-m"}, command...)
}

// does runs shell commands inside, which must succeed.
func (c *container) does(script string) {
	c.t.Helper()
	command(c.t, c.words("sh", "-c", script)...)
}

// runs starts a program inside.
func (c *container) runs(variables []string, program ...string) *tool {
	c.t.Helper()
	w := c.words(program...)
	cmd := exec.Command(w[0], w[1:]...)
	cmd.Env = append(os.Environ(), variables...)
	return started(c.t, program[0], cmd)
}

// listens waits until somebody inside listens at a TCP port.
func (c *container) listens(port int) {
	c.t.Helper()
	await.Eventually(c.t, fmt.Sprintf("somebody listens at port %d", port), func() bool {
		for _, table := range []string{"tcp", "tcp6"} {
			b, _ := os.ReadFile("/proc/" + c.pid + "/net/" + table)
			for line := range strings.Lines(string(b)) {
				if f := strings.Fields(line); len(f) > 3 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) && f[3] == "0A" {
					return true
				}
			}
		}
		return false
	})
}

// ear hears the frames that arrive at an interface.
type ear struct{ own, hostile atomic.Int64 }

// What is in the frames of the hostile tenant: those with mark must arrive nowhere, those with ownMark are from its own address.
const (
	mark    = "from another's address"
	ownMark = "from its own address"
)

// ownThread stands for the test's own namespace where a process is named. It is that of a thread that has not gone elsewhere: /proc/self is
// the first thread, which may be somewhere else.
const ownThread = "thread-self"

// listen hears an interface in the network namespace of a process, until the test ends.
func listen(t *testing.T, pid, name string) *ear {
	t.Helper()
	e, opened := &ear{}, make(chan error)
	done := make(chan struct{})
	var ends atomic.Bool
	go func() {
		defer close(done)
		fd, err := packets(pid, name)
		if err != nil {
			opened <- err
			return
		}
		defer unix.Close(fd)
		close(opened)
		b := make([]byte, 1<<16)
		for !ends.Load() {
			n, from, err := unix.Recvfrom(fd, b, 0)
			if err != nil { // nothing has come for a while, or a signal
				continue
			}
			if a, ok := from.(*unix.SockaddrLinklayer); ok && a.Pkttype == unix.PACKET_OUTGOING {
				continue
			}
			switch {
			case bytes.Contains(b[:n], []byte(mark)):
				e.hostile.Add(1)
			case bytes.Contains(b[:n], []byte(ownMark)):
				e.own.Add(1)
			}
		}
	}()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ends.Store(true)
		<-done
	})
	return e
}

// packets opens a packet socket, with a time limit, so that who reads ends. The thread comes back: were it to end, so would the processes
// that were started in it (PR_SET_PDEATHSIG), and the first thread would stay where it is.
func packets(pid, name string) (int, error) {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		return -1, err
	}
	defer home.Close()
	ns, err := netns.GetFromPath("/proc/" + pid + "/ns/net")
	if err != nil {
		return -1, err
	}
	defer ns.Close()
	if err := netns.Set(ns); err != nil {
		return -1, err
	}
	fd, err := packetSocket(name)
	if back := netns.Set(home); back != nil {
		return -1, errors.Join(err, back) // and the thread ends with its goroutine
	}
	runtime.UnlockOSThread()
	return fd, err
}

// packetSocket opens one at an interface of the thread's network namespace.
func packetSocket(name string) (int, error) {
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return -1, err
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, req)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: int(req.Uint32())})
	}
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
	}
	if err != nil {
		unix.Close(fd)
	}
	return fd, err
}

// hostile sends frames from others' addresses to everybody as fast as it comes to, garbage from its own, and garbage to the socket of its
// function. It begins to say "sent" when it has sent some of each.
const hostile = `
import os, random, socket, sys
name, sock, own, others, mark = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4].split(','), sys.argv[5].encode()
own_mark = sys.argv[6].encode()
mac = lambda s: bytes.fromhex(s.replace(':', ''))
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind((name, 0))
everybody = [mac(o) for o in others] + [b'\xff' * 6, mac('01:00:5e:00:00:01')]
def put(b):
    try: wire.send(b)
    except OSError: pass
n = 0
while True:
    for to in everybody:
        for source in everybody[:-2] + [mac('02:00:00:00:00:77')]:
            for kind in (b'\x08\x00', b'\x08\x06', b'\x86\xdd', b'\x89\x15', b'\x88\x08', b'\x81\x00\x00\x07\x08\x00'):
                put(to + source + kind + mark + os.urandom(random.randrange(40, 1000)))
        put(to + mac(own) + b'\x08\x00' + own_mark + os.urandom(100))
        put(to + mac(own) + os.urandom(random.randrange(2, 1400)))
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        try:
            c = socket.socket(socket.AF_UNIX, kind)
            c.settimeout(0.2)
            c.connect(sock)
            for _ in range(4): c.send(os.urandom(random.randrange(1, 4000)))
            c.close()
        except OSError: pass
    n += 1
    if n == 3: print('sent', flush=True)
`

// TestTenants: a virtual machine, a container and a hostile one, each with a virtual function of one port, at the same time. The machine's
// Soft-RoCE and a virtual function's program reach each other, the container's unmodified perftest and iperf3 the physical function; all
// their data arrive. The container's function is visible there alone, as the only device. Of
// what the hostile one sends from others' addresses nothing arrives anywhere, and it is counted.
func TestTenants(t *testing.T) {
	image := site(t)
	dir, err := os.MkdirTemp("", "tenants") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	env := []string{"SOFTVPI_SOCKET=" + filepath.Join(dir, "s")}
	driver := begin(t, image, env, "up", "--skip-self-check", "--socket", filepath.Join(dir, "s"), "--state", filepath.Join(dir, "state"),
		"--adapter", "pf=10.99.0.1/24,switch=s,mac=02:00:00:99:00:01,host=tap:nic0",
		"--adapter", "far=10.99.0.9/24,switch=s,mac=02:00:00:99:00:09,host=tap:nic1")
	driver.says(t, "listening")
	t.Cleanup(func() {
		_ = driver.cmd.Process.Signal(syscall.SIGTERM)
		driver.succeeds(t, programLimit)
	})
	ours := func(words ...string) string {
		t.Helper()
		p := begin(t, image, env, words...)
		p.succeeds(t, programLimit)
		return p.text()
	}
	honest, bad := newContainer(t), newContainer(t)
	const machineMAC, honestMAC, greenMAC, badMAC = "52:54:00:99:00:02", "02:00:00:99:00:03", "02:00:00:99:00:05", "02:00:00:99:00:04"
	ours("vf", "create", "pf", "machine", "mac="+machineMAC, "address=10.99.0.2/24", "rdma=off", "host=stream:"+filepath.Join(dir, "m"))
	ours("vf", "create", "pf", "honest", "mac="+honestMAC, "address=10.99.0.3/24", "tap=honest0", "netns=/proc/"+honest.pid+"/ns/net", "visible=netns")
	ours("vf", "create", "pf", "bad", "mac="+badMAC, "address=10.99.0.4/24", "tap=bad0", "netns=/proc/"+bad.pid+"/ns/net")
	ours("vf", "create", "pf", "green", "mac="+greenMAC, "address=10.99.0.5/24")
	honest.does("ip addr add 10.99.0.3/24 dev honest0 && ip link set honest0 up")
	bad.does("ip link set bad0 up")
	g := bootOn(t, 1500, "stream,id=n0,server=off,addr.type=unix,addr.path="+filepath.Join(dir, "m"))
	command(t, "sh", "-c", "ip addr add 10.99.0.1/24 dev nic0 && ip link set nic0 up && ip link set nic1 up")
	ears := map[string]*ear{"the container": listen(t, honest.pid, "honest0"), "the physical function": listen(t, ownThread, "nic0"),
		"the wire": listen(t, ownThread, "nic1")}

	flood := bad.runs(nil, "python3", "-c", hostile, "bad0", filepath.Join(dir, "s.functions", "bad.sock"), badMAC,
		strings.Join([]string{machineMAC, honestMAC, greenMAC, "02:00:00:99:00:01", "02:00:00:99:00:09"}, ","), mark, ownMark)
	flood.says(t, "sent")
	before := spoofedBy(t, ours, "bad")

	green := append([]string{"SOFTVPI_FUNCTION=green"}, env...)
	asked := begin(t, image, green, "nd_rping", "-s", "-a", "10.99.0.5", "-v", "-V", "-C", "50", "-S", "3000")
	asked.says(t, "listening")
	perf := []string{"ib_send_bw", "-d", "softvpi0", "-x", "0", "-F", "-s", "65536", "-n", "500", "-p", "18515"}
	run := filepath.Join(image, "softvpi")
	sink := honest.runs(env, append([]string{run, "verbs", "run", "--"}, perf...)...) // the function is all that is visible there
	its := append([]string{"SOFTVPI_FUNCTION=honest"}, env...)
	for _, x := range []struct {
		elsewhere *tool
		says      string
	}{
		{bad.runs(env, run, "verbs", "run", "--vf", "honest", "--", "ibv_devinfo"), "No IB devices"},
		{bad.runs(its, run, "nd_rping", "-s", "-a", "10.99.0.3"), `"honest" is visible in the network namespace net:[`},
		{begin(t, image, its, "nd_rping", "-s", "-a", "10.99.0.3"), `"honest" is visible in the network namespace net:[`},
	} {
		if err := x.elsewhere.ends(t, programLimit); err == nil || !strings.Contains(x.elsewhere.text(), x.says) {
			t.Errorf("%s, in another namespace: %v\n%s", x.elsewhere.name, err, x.elsewhere.text())
		}
	}
	iperf := honest.runs(nil, "iperf3", "-s", "-1", "-p", "5201")
	honest.listens(18515)
	honest.listens(5201)

	ping := g.program(t, "rping", "-c", "-a", "10.99.0.5", "-v", "-V", "-C", "50", "-S", "3000")
	source := begin(t, image, env, append(append([]string{"verbs", "run", "--"}, perf...), "10.99.0.3")...)
	bytes := started(t, "iperf3", exec.Command("iperf3", "-c", "10.99.0.3", "-p", "5201", "-n", "20M"))
	ping.rpingSucceeds(t, programLimit)
	asked.succeeds(t, programLimit)
	count(t, "rping", ping.text(), "ping data: rdma-ping-", 50)
	for _, p := range []*tool{source, sink, bytes, iperf} {
		p.succeeds(t, programLimit)
	}

	server := g.program(t, "rping", "-s", "-a", "10.99.0.2", "-v", "-V", "-C", "50", "-S", "3000", "-p", "7174")
	g.listens(t)
	begin(t, image, env, "nd_rping", "-c", "-a", "10.99.0.2", "-v", "-V", "-C", "50", "-S", "3000", "-p", "7174").succeeds(t, programLimit)
	server.succeeds(t, programLimit)

	await.Eventually(t, "the hostile tenant's frames are counted", func() bool { return spoofedBy(t, ours, "bad") > before })
	select {
	case <-flood.done:
		t.Errorf("the hostile tenant has ended: %s", flood.text())
	default:
	}
	for where, e := range ears {
		await.Eventually(t, where+" gets what it sends from its own address", func() bool { return e.own.Load() > 0 })
		if n := e.hostile.Load(); n != 0 {
			t.Errorf("%s: %d frames from others' addresses", where, n)
		}
	}
	g.stop()
	seen, err := os.ReadFile(g.capture)
	if err != nil || !strings.Contains(string(seen), ownMark) || strings.Contains(string(seen), mark) {
		t.Errorf("the machine's card: %d bytes, %v; from its own address %v, from others' %v", len(seen), err,
			strings.Contains(string(seen), ownMark), strings.Contains(string(seen), mark))
	}
}

// spoofedBy returns how many frames of a virtual function were dropped because of their source address.
func spoofedBy(t *testing.T, ours func(...string) string, name string) uint64 {
	t.Helper()
	var list []struct {
		Name     string
		Counters map[string]uint64
	}
	if err := json.Unmarshal([]byte(ours("vf", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if f.Name == name {
			return f.Counters["spoofed_mac"]
		}
	}
	t.Fatalf("there is no virtual function %s", name)
	return 0
}
