package interop

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOverlay: a function in a virtual subnet and Linux's Soft-RoCE on its vxlan device in a machine reach each other by customer
// addresses, each as who asks and as who answers, and all their data arrive: RoCE v2 inside VXLAN as Linux makes it. The machine's kernel
// asks for the function's address through the tunnel.
func TestOverlay(t *testing.T) {
	image := site(t)
	dir, err := os.MkdirTemp("", "overlay") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	env := []string{"SOFTVPI_SOCKET=" + filepath.Join(dir, "s")}
	driver := begin(t, image, env, "up", "--skip-self-check", "--socket", filepath.Join(dir, "s"), "--state", filepath.Join(dir, "state"),
		"--adapter", "pf=10.99.0.1/24,switch=s,mac=02:00:00:99:00:01", "--adapter", "far=10.99.0.9/24,switch=s,mac=02:00:00:99:00:09")
	driver.says(t, "listening")
	t.Cleanup(func() {
		_ = driver.cmd.Process.Signal(syscall.SIGTERM)
		driver.succeeds(t, programLimit)
	})
	for _, words := range [][]string{
		{"vf", "create", "far", "machine", "mac=52:54:00:99:00:02", "address=10.99.0.2/24", "rdma=off", "host=stream:" + filepath.Join(dir, "m")},
		{"overlay", "add", "address", "adapter=pf", "address=10.99.0.7/24"},
		{"overlay", "add", "record", "vsid=5001", "customer=172.16.0.1", "mac=00:15:5d:00:00:01", "provider=10.99.0.7"},
		{"overlay", "add", "record", "vsid=5001", "customer=172.16.0.2", "mac=00:15:5d:00:00:02", "provider=10.99.0.2"},
		{"vf", "create", "pf", "red", "mac=00:15:5d:00:00:01", "vsid=5001"},
	} {
		begin(t, image, env, words...).succeeds(t, programLimit)
	}
	g := bootOn(t, 1500, "stream,id=n0,server=off,addr.type=unix,addr.path="+filepath.Join(dir, "m"))
	g.sh(t, "ip link add vx address 00:15:5d:00:00:02 type vxlan id 5001 local 10.99.0.2 remote 10.99.0.7 dstport 4789 && "+
		"ip addr add 172.16.0.2/24 dev vx && ip link set vx up && rdma link add inside type rxe netdev vx")
	red := append([]string{"SOFTVPI_FUNCTION=red"}, env...)

	asked := begin(t, image, red, "nd_rping", "-s", "-a", "172.16.0.1", "-v", "-V", "-C", "50", "-S", "3000")
	asked.says(t, "listening")
	ping := g.program(t, "rping", "-c", "-a", "172.16.0.1", "-v", "-V", "-C", "50", "-S", "3000")
	ping.rpingSucceeds(t, programLimit)
	asked.succeeds(t, programLimit)
	count(t, "rping", ping.text(), "ping data: rdma-ping-", 50)

	server := g.program(t, "rping", "-s", "-a", "172.16.0.2", "-v", "-V", "-C", "50", "-S", "3000", "-p", "7174")
	g.listens(t)
	begin(t, image, red, "nd_rping", "-c", "-a", "172.16.0.2", "-v", "-V", "-C", "50", "-S", "3000", "-p", "7174").succeeds(t, programLimit)
	server.succeeds(t, programLimit)
}
