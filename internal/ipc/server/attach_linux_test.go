package server_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

type clientConfig = device.ClientConfig

// TestAttachTellsWhoIsThere: the driver learns a program's name, process and user when it attaches, with characters
// that could confuse a terminal replaced, and the program learns the driver's.
func TestAttachTellsWhoIsThere(t *testing.T) {
	h, c := pair(t, server.Config{Driver: "softvpi 1"}, client.Options{Name: "prog\x01"})
	cfg := h.Only(t).Config
	if cfg.Name != "prog?" || cfg.PID != os.Getpid() || cfg.UID != os.Getuid() || !cfg.Attached {
		t.Errorf("the driver knows the program as %+v", cfg)
	}
	if name, pid := c.Driver(); name != "softvpi 1" || pid != os.Getpid() {
		t.Errorf("the driver is %q, process %d; want \"softvpi 1\" and this process", name, pid)
	}
}

// TestDialWithoutDriver: Dial reports that the socket does not exist if no driver runs.
func TestDialWithoutDriver(t *testing.T) {
	if _, err := client.Dial(ctx, t.TempDir()+"/none", client.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
}

// TestDriverRefuses: if the driver refuses a session, Dial returns the driver's error.
func TestDriverRefuses(t *testing.T) {
	h := &fake.Host{Refuse: command.Errorf(command.Exhausted, "no room")}
	_, path := fake.Serve(t, h, server.Config{})
	if _, err := client.Dial(ctx, path, client.Options{}); !fake.IsCode(err, command.Exhausted) {
		t.Errorf("error %v, want exhausted", err)
	}
}

// TestMaxClients: a program beyond MaxClients is refused, and the first one is still served.
func TestMaxClients(t *testing.T) {
	h := &fake.Host{}
	_, path := fake.Serve(t, h, server.Config{MaxClients: 1})
	c := dial(t, path, client.Options{})
	if _, err := client.Dial(ctx, path, client.Options{}); !fake.IsCode(err, command.Exhausted) {
		t.Errorf("second program: error %v, want exhausted", err)
	}
	if _, err := c.AllocPD(ctx, 0); err != nil {
		t.Errorf("first program: %v", err)
	}
}

// TestNoDescriptorForProgram: a driver that has no descriptor left for a program refuses it with an error that says
// so, and serves the next one.
func TestNoDescriptorForProgram(t *testing.T) {
	s, path := fake.Serve(t, &fake.Host{}, server.Config{})
	c := dialRaw(t, path)
	await.Eventually(t, "accepted", func() bool { return s.Clients() == 1 })
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	c.put(proto.AppendFrame(nil, proto.OpHello, 0, 1, proto.Encode(goodHello())))
	reason := c.end()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(reason, "wake pipe") {
		t.Errorf("refused with %q, want a reason that names the wake pipe", reason)
	}
	dial(t, path, client.Options{})
}

// TestErrorsCrossWithTheirClass: an error of the driver reaches the program with its class and text.
func TestErrorsCrossWithTheirClass(t *testing.T) {
	_, c := pair(t, server.Config{}, client.Options{})
	_, err := c.AllocPD(ctx, 7)
	if !fake.IsCode(err, command.NotFound) || err.Error() != "no such object: adapter 7: there is 1" {
		t.Errorf("error %v, want not found, about adapter 7", err)
	}
}
