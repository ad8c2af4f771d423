package server

import (
	"context"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/api"
)

const nobody = 65534

// TestPeersAreKnownByTheirCredentials: another user whom the mode of the socket admits can read and change nothing;
// the driver's own user can do both. The system says who is at the other end, whatever the request says.
func TestPeersAreKnownByTheirCredentials(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can connect as somebody else")
	}
	b := serve(t, Config{})
	if err := os.Chmod(b.socket, 0o666); err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSuffix(b.socket, b.socket[strings.LastIndexByte(b.socket, '/'):])
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		uid                  int
		method, path, body   string
		status               int
		authorization, error string
	}{
		{0, "GET", "/status", "", 200, "", ""},
		{0, "PUT", "/adapters/Ethernet%201/state", `{"enable":false}`, 204, "", ""},
		{nobody, "GET", "/status", "", 200, "", ""},
		{nobody, "PUT", "/adapters/Ethernet%201/state", `{"enable":false}`, 403, "", api.ErrNotAllowed.Error()},
		{nobody, "PUT", "/adapters/Ethernet%201/state", `{"enable":false}`, 403, "Bearer x", api.ErrNotAllowed.Error()},
		{nobody, "DELETE", "/registry/key?path=HKLM", "", 403, "", api.ErrNotAllowed.Error()},
		{nobody, "GET", "/capture?adapter=Ethernet+1", "", 403, "", api.ErrNotAllowed.Error()},
		{nobody, "POST", "/captures", `{"adapter":"Ethernet 1","file":"/tmp/x"}`, 403, "", api.ErrNotAllowed.Error()},
	} {
		conn := connectAs(t, c.uid, b.socket)
		client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return conn,
				nil
		}, DisableKeepAlives: true}}
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://driver"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var text [4096]byte
		n, _ := resp.Body.Read(text[:])
		_ = resp.Body.Close()
		if status := resp.StatusCode; status/100 != c.status/100 || c.status == 403 && status != 403 ||
			!strings.Contains(string(text[:n]), c.error) {
			t.Errorf("user %d, %s %s: %d %s, want %d", c.uid, c.method, c.path, status, text[:n], c.status)
		}
	}
}

// connectAs connects to a Unix socket as a user. Credentials belong to a thread: this one ends with its goroutine.
func connectAs(t *testing.T, uid int, socket string) net.Conn {
	t.Helper()
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		keep := -1
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(keep), uintptr(uid), uintptr(keep)); errno != 0 {
			done <- result{nil, errno}
			return
		}
		c, err := net.Dial("unix", socket)
		done <- result{c, err}
	}()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.conn
}
