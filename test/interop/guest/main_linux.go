// Command guest is the first process of the Soft-RoCE guest: it loads the
// modules, gives eth0 its addresses, puts an rxe device on it, and then runs the
// programs that come over eth1, which carries nothing else.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/test/interop/remote"
)

// control is where programs are asked for; it is eth1's address.
const control = "10.98.0.2"

func main() {
	fmt.Printf("guest: %v\n", boot())
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// boot returns only where something failed.
func boot() error {
	if err := mounts(); err != nil {
		return err
	}
	os.Setenv("PATH", "/usr/bin:/usr/sbin")
	os.Setenv("HOME", "/root")
	if err := loadModules("/modules"); err != nil {
		return err
	}
	// Registered memory is locked and many QPs need many descriptors.
	for _, r := range []int{unix.RLIMIT_MEMLOCK, unix.RLIMIT_NOFILE} {
		if err := unix.Setrlimit(r, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}); r == unix.RLIMIT_NOFILE && err != nil {
			return fmt.Errorf("set limit of open files: %w", err)
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}); err != nil {
		return fmt.Errorf("unlock memory: %w", err)
	}
	settings, err := commandLine()
	if err != nil {
		return err
	}
	if err := network(settings); err != nil {
		return err
	}
	return serve()
}

func mounts() error {
	for _, m := range []struct{ kind, at string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"},
	} {
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil && err != unix.EBUSY {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	return nil
}

// loadModules loads what the file order lists. One that this processor cannot
// use is passed over.
func loadModules(dir string) error {
	order, err := os.ReadFile(filepath.Join(dir, "order"))
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(order)) {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && err != unix.ENODEV && err != unix.EEXIST {
			fmt.Printf("guest: module %s: %v\n", name, err)
		}
		f.Close()
	}
	return nil
}

// commandLine returns the settings that the kernel's command line has for this
// guest: words of the form interop.NAME=VALUE.
func commandLine() (map[string]string, error) {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return nil, err
	}
	s := map[string]string{}
	for _, word := range strings.Fields(string(line)) {
		if rest, ok := strings.CutPrefix(word, "interop."); ok {
			name, value, _ := strings.Cut(rest, "=")
			s[name] = value
		}
	}
	return s, nil
}

func network(s map[string]string) error {
	steps := []string{
		"ip link set lo up",
		"ip addr add " + control + "/30 dev eth1",
		"ip link set eth1 up",
		"ip link set eth0 mtu " + s["mtu"],
	}
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/eth0/accept_dad", []byte("0"), 0); err != nil {
		return err
	}
	steps = append(steps, "ip link set eth0 up")
	for _, a := range strings.Split(s["addr"], ",") {
		steps = append(steps, "ip addr add "+a+" dev eth0")
	}
	steps = append(steps, "rdma link add rxe0 type rxe netdev eth0", "ip link set ifb0 up")
	for _, step := range steps {
		f := strings.Fields(step)
		if out, err := exec.Command(f[0], f[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", step, err, out)
		}
	}
	return nil
}

func serve() error {
	l, err := net.Listen("tcp", net.JoinHostPort(control, "1"))
	if err != nil {
		return err
	}
	up, _ := os.Open("/proc/uptime")
	if line, err := bufio.NewReader(up).ReadString(' '); err == nil {
		fmt.Printf("guest: ready after %ss\n", strings.TrimSpace(line))
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors, say; the kernel keeps the rest waiting
			continue
		}
		go remote.Serve(conn)
	}
}
