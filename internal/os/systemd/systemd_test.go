//go:build unix

package systemd

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// environment is one as a function.
type environment map[string]string

func (e environment) get(name string) string { return e[name] }

// place returns a directory whose paths are short enough for sockets.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestConnect: a manager is who the environment names, and watches the process that it names, for as long as it says.
func TestConnect(t *testing.T) {
	path := filepath.Join(place(t), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, x := range []struct {
		name string
		env  environment
		want time.Duration
		ok   bool
	}{
		{"no watchdog", environment{notifyVariable: path}, 0, true},
		{"this process", environment{notifyVariable: path, watchdogVariable: "90000000", watchdogPID: "7"}, 90 * time.Second, true},
		{"any process", environment{notifyVariable: path, watchdogVariable: "1"}, time.Microsecond, true},
		{"another process", environment{notifyVariable: path, watchdogVariable: "1", watchdogPID: "8"}, 0, true},
		{"no number", environment{notifyVariable: path, watchdogVariable: "soon"}, 0, false},
		{"nothing", environment{notifyVariable: path, watchdogVariable: "0"}, 0, false},
		{"too long", environment{notifyVariable: path, watchdogVariable: "9223372036854775807"}, 0, false},
		{"relative", environment{notifyVariable: "notify"}, 0, false},
		{"nobody there", environment{notifyVariable: path + "x"}, 0, false},
	} {
		m, err := Connect(x.env.get, 7)
		if (err == nil) != x.ok || m.Watchdog() != x.want {
			t.Errorf("%s: watched for %v, %v", x.name, m.Watchdog(), err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if m, err := Connect(environment{}.get, 7); m != nil || err != nil {
		t.Errorf("without a manager: %v, %v", m, err)
	}
}

// TestTell: states are lines of one datagram, and none can bring another along; to nobody anything may be told.
func TestTell(t *testing.T) {
	path := filepath.Join(place(t), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m, err := Connect(environment{notifyVariable: path}.get, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Tell(Ready, Status("a link\nMAINPID=1 is down")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, err := l.Read(b)
	if want := "READY=1\nSTATUS=a link MAINPID=1 is down"; err != nil || string(b[:n]) != want {
		t.Errorf("%q, %v; want %q", b[:n], err, want)
	}
	var none *Manager
	if err := none.Tell(Alive); err != nil {
		t.Error(err)
	}
}

// passed duplicates a socket's descriptor, as one that a process gets.
func passed(t *testing.T, c interface{ File() (*os.File, error) }) uintptr {
	t.Helper()
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return uintptr(fd)
}

// TestSockets: a passed socket serves who has connected before, and its path stays when it is closed. What is no listening unix socket
// is refused, and what is for another process left alone.
func TestSockets(t *testing.T) {
	path := filepath.Join(place(t), "s")
	held, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	early, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	env := environment{listenPID: "7", listenCount: "1"}
	if list, err := sockets(env.get, 8, 1<<20); list != nil || err != nil {
		t.Errorf("another process gets %v, %v", list, err)
	}
	list, err := sockets(env.get, 7, passed(t, held))
	if err != nil || len(list) != 1 || list[0].Addr().String() != path {
		t.Fatalf("%v, %v", list, err)
	}
	c, err := list[0].Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := list[0].Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("the manager's socket is gone: ", err)
	}
	for what, text := range map[string]string{"no number": "all", "negative": "-1", "too many": strconv.Itoa(mostSockets + 1)} {
		if _, err := sockets(environment{listenPID: "7", listenCount: text}.get, 7, 1<<20); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	if _, err := sockets(env.get, 7, passed(t, tcp)); err == nil {
		t.Error("a TCP socket is accepted")
	}
	if _, err := sockets(env.get, 7, 1<<20); err == nil {
		t.Error("a descriptor that is not open is accepted")
	}
}
