package driver

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/os/paths"
)

// opened returns the socket of a virtual function, as a service manager opens it, and another descriptor of it, as a driver gets one.
func opened(t *testing.T, path string) (pass func() *net.UnixListener) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	return func() *net.UnixListener {
		l, err := (&passedFunction{socket: held}).listener()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// TestFunctions_PassedSocket: the socket of a virtual function that a service manager has opened serves its programs whenever there is
// such a function, also those that were there before the driver; while there is none they are told so. It stays, with its mode.
func TestFunctions_PassedSocket(t *testing.T) {
	cfg := hosting(t)
	path := paths.Function(cfg.Socket, "t1")
	pass := opened(t, path)
	start := func() *Driver {
		d, err := Start(context.Background(), cfg, Options{Version: "test", Sockets: []*net.UnixListener{pass()}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	stop := func(d *Driver) {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if s, err := os.Stat(path); err != nil || s.Mode().Perm() != 0o640 {
			t.Errorf("the manager's socket: %v, %v", s, err)
		}
	}
	attached := func() error {
		c, err := client.Dial(t.Context(), path, client.Options{})
		if err != nil {
			return err
		}
		defer c.Close()
		list, err := c.Adapters(t.Context())
		if err == nil && (len(list) != 1 || !strings.HasPrefix(string(list[0].Name[:]), "t1")) {
			t.Errorf("the tenant sees %d adapters", len(list))
		}
		return err
	}
	create := func(d *Driver, name string, settings ...string) error {
		_, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: name, Settings: settings})
		return err
	}
	d := start()
	for range 2 {
		if err := attached(); !errors.Is(err, &command.Error{Code: command.Removed}) || !strings.Contains(err.Error(), `no virtual function "t1"`) {
			t.Errorf("without the function: %v", err)
		}
		if err := create(d, "t1", "group=0"); err == nil || !strings.Contains(err.Error(), "SocketGroup=") {
			t.Errorf("a group of its own: %v", err)
		}
		if err := create(d, "t1"); err != nil {
			t.Fatal(err)
		}
		if err := attached(); err != nil {
			t.Error(err)
		}
		if err := d.SetFunction(api.FunctionRequest{Name: "t1", Settings: []string{"group=0"}}); err == nil || !strings.Contains(err.Error(), "SocketGroup=") {
			t.Errorf("another group: %v", err)
		}
		if err := d.RemoveFunction("t1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(create(d, "t1"), create(d, "t2")); err != nil {
		t.Fatal(err)
	}
	stop(d)
	if _, err := os.Stat(paths.Function(cfg.Socket, "t2")); err == nil {
		t.Error("the driver's own socket is still there")
	}
	early := make(chan error, 1)
	go func() { early <- attached() }()
	d = start()
	defer stop(d)
	if err := <-early; err != nil {
		t.Errorf("who was there before the driver: %v", err)
	}
	if err := d.RestartAdapter("a"); err != nil {
		t.Fatal(err)
	}
	if err := attached(); err != nil {
		t.Errorf("after a restart of the adapter: %v", err)
	}
}

// TestFunctions_PassedSocketRefused: what is at no path of a virtual function's socket, or there twice, is refused.
func TestFunctions_PassedSocketRefused(t *testing.T) {
	for name, files := range map[string][]string{"no name": {".sock"}, "no suffix": {"t1"}, "no such name": {"t 1.sock"}, "twice": {"t1.sock", "t1.sock"}} {
		cfg := hosting(t)
		pass := opened(t, filepath.Join(paths.Functions(cfg.Socket), files[0]))
		var list []*net.UnixListener
		for range files {
			list = append(list, pass())
		}
		d, err := Start(context.Background(), cfg, Options{Version: "test", Sockets: list})
		if err == nil {
			d.Close()
		}
		var wrong *config.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "NAME.sock, each once") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
