package interop

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// says waits until the program has printed a line with this.
func (r *run) says(t testing.TB, what string) {
	t.Helper()
	for {
		line, err := r.line(within(t, programLimit))
		if err != nil {
			t.Fatalf("waiting for %q: %v", what, err)
		}
		if strings.Contains(line, what) {
			return
		}
	}
}

// TestAttachedGuest: programs in a virtual machine whose kernel has no RDMA for it, Debian's with our libraries and ours, have a virtual
// function of the host's driver by a port of virtio-serial: they reach the physical function's programs from
// either side. When the agent in the machine is killed in the middle of something, the next one has the same port again.
func TestAttachedGuest(t *testing.T) {
	image := site(t)
	dir, err := os.MkdirTemp("", "guest") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	env := []string{"SOFTVPI_SOCKET=" + filepath.Join(dir, "s")}
	driver := begin(t, image, env, "up", "--skip-self-check", "--socket", filepath.Join(dir, "s"), "--state", filepath.Join(dir, "state"),
		"--adapter", "pf=10.99.0.1/24,switch=s", "--adapter", "far=10.99.0.9/24,switch=s")
	driver.says(t, "listening")
	t.Cleanup(func() {
		_ = driver.cmd.Process.Signal(syscall.SIGTERM)
		driver.succeeds(t, programLimit)
	})
	begin(t, image, env, "vf", "create", "pf", "red", "address=10.99.0.3/24", "max=2000").succeeds(t, programLimit)
	line := filepath.Join(dir, "line")
	host := begin(t, image, env, "guest", "serve", "red", "--listen", "unix:"+line, "--verbose")
	host.says(t, "waiting for a machine")
	t.Cleanup(func() {
		_ = host.cmd.Process.Signal(syscall.SIGTERM)
		host.succeeds(t, programLimit)
		if t.Failed() {
			t.Log(host.text())
		}
	})
	g := begun(t, &guest{mtu: 1500, wire: tapWire, initrd: withOurs, port: line})
	const inside = "SOFTVPI_SOCKET=/run/softvpi.sock"
	ours := func(words ...string) *run {
		t.Helper()
		return g.program(t, append([]string{"env", inside, "softvpi"}, words...)...)
	}
	// There is no udev, which would give the port its name.
	port := "device:" + strings.TrimSpace(g.sh(t, `for d in /sys/class/virtio-ports/*; do [[ $(<$d/name) == softvpi ]] && echo /dev/${d##*/}; done`))
	agent := ours("guest", "attach", port, "--verbose")
	agent.says(t, "programs can attach")

	devices := ours("verbs", "run", "--", "ibv_devinfo")
	devices.succeeds(t, programLimit)
	if n := strings.Count(devices.text(), "hca_id:"); n != 1 || !strings.Contains(devices.text(), "PORT_ACTIVE") {
		t.Errorf("the machine's programs see %d devices, want one that is active\n%s", n, devices.text())
	}
	bystander := []string{"ibv_rc_pingpong", "-n", "100", "-s", "10000", "-c", "-g", "0", "-p", "18515"}
	server := ours(append([]string{"verbs", "run", "--"}, bystander...)...)
	g.listensAt(t, 18515, programLimit)
	client := begin(t, image, env, append(append([]string{"verbs", "run", "--"}, bystander...), "10.98.0.2")...)
	client.succeeds(t, programLimit)
	server.succeeds(t, programLimit)

	asked := begin(t, image, env, "nd_rping", "-s", "-a", "10.99.0.1", "-v", "-V", "-C", "20", "-S", "3000")
	asked.says(t, "listening")
	ping := ours("verbs", "run", "--", "rping", "-c", "-a", "10.99.0.1", "-v", "-V", "-C", "20", "-S", "3000")
	ping.rpingSucceeds(t, programLimit)
	asked.succeeds(t, programLimit)
	count(t, "rping", ping.text(), "ping data: rdma-ping-", 20)

	endless := ours("verbs", "run", "--", "ib_write_bw", "-x", "0", "-F", "-D", "60", "-p", "18516")
	g.listensAt(t, 18516, programLimit)
	source := begin(t, image, env, "verbs", "run", "--", "ib_write_bw", "-d", "softvpi0", "-x", "0", "-F", "-D", "60", "-p", "18516", "10.98.0.2")
	await.Eventually(t, "the host has a connection of the machine's", func() bool {
		p := begin(t, image, env, "vf", "list")
		p.succeeds(t, programLimit)
		return strings.Contains(p.text(), "programs 1, queue pairs 1")
	})
	if err := agent.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := endless.ends(t, programLimit); err != nil {
		t.Fatal(err)
	}
	_ = source.ends(t, programLimit) // its peer is gone
	agent = ours("guest", "attach", port, "--verbose")
	agent.says(t, "programs can attach")
	ping = ours("nd_rping", "-s", "-a", "10.99.0.3", "-C", "5")
	ping.says(t, "listening")
	begin(t, image, env, "nd_rping", "-c", "-V", "-a", "10.99.0.3", "-C", "5").succeeds(t, programLimit)
	ping.succeeds(t, programLimit)
	overVsock(t, g)
}

// overVsock has a driver in the machine, too, and the stream to it over vsock: with no host to connect to, Linux's vsock_loopback takes
// what goes to the host back to the machine, from VMADDR_CID_LOCAL.
func overVsock(t *testing.T, g *guest) {
	t.Helper()
	at := func(socket string, words ...string) *run {
		t.Helper()
		return g.program(t, append([]string{"env", "SOFTVPI_SOCKET=/run/" + socket, "softvpi"}, words...)...)
	}
	at("own.sock", "up", "--skip-self-check", "--state", "/run/own", "--adapter", "pf=10.99.1.1/24,switch=s", "--adapter",
		"far=10.99.1.9/24,switch=s").says(t, "listening")
	at("own.sock", "vf", "create", "pf", "red", "address=10.99.1.3/24").succeeds(t, programLimit)
	at("own.sock", "guest", "serve", "red", "--listen", "vsock:1:7000").says(t, "waiting for a machine")
	at("vsock.sock", "guest", "attach", "vsock:7000").says(t, "programs can attach")
	asked := at("own.sock", "nd_rping", "-s", "-a", "10.99.1.9", "-V", "-C", "10", "-S", "3000")
	asked.says(t, "listening")
	ping := at("vsock.sock", "verbs", "run", "--", "rping", "-c", "-a", "10.99.1.9", "-v", "-V", "-C", "10", "-S", "3000")
	ping.rpingSucceeds(t, programLimit)
	asked.succeeds(t, programLimit)
	count(t, "rping over vsock", ping.text(), "ping data: rdma-ping-", 10)
}
