package server_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/os/peer"
)

const nobody = 65534

// rawAs connects to a socket as a user with a group and supplementary groups. Credentials belong to a thread: this one
// ends with its goroutine.
func rawAs(t *testing.T, socket string, uid, gid int, groups ...uint32) raw {
	t.Helper()
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		list := append(groups, 0)
		calls := [][4]uintptr{
			{unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&list[0]))},
			{unix.SYS_SETRESGID, ^uintptr(0), uintptr(gid), ^uintptr(0)},
			{unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)},
		}
		for _, c := range calls {
			if _, _, errno := unix.RawSyscall(c[0], c[1], c[2], c[3]); errno != 0 {
				done <- result{nil, errno}
				return
			}
		}
		runtime.KeepAlive(list)
		c, err := net.Dial("unix", socket)
		done <- result{c, err}
	}()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(func() { _ = r.conn.Close() })
	return raw{r.conn.(*net.UnixConn), t}
}

// TestWhoMayAttach: whatever the mode of the socket, only programs of the audience attach; others are told why not, and
// the number of those who are kept waiting for that is limited.
func TestWhoMayAttach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can connect as somebody else")
	}
	own := os.Getegid()
	for _, c := range []struct {
		audience peer.Audience
		uid, gid int
		groups   []uint32
		refused  string
	}{
		{peer.Owner, 0, 0, nil, ""},
		{peer.Owner, nobody, nobody, nil, "user 65534: allowed: user 0"},
		{peer.Owner, nobody, own, nil, "user 65534: allowed: user 0"},
		{peer.Group, 0, nobody, nil, ""},
		{peer.Group, nobody, nobody, []uint32{1, 2}, "not in group"},
		{peer.Group, nobody, own, nil, ""},
		{peer.Group, nobody, nobody, []uint32{7, uint32(own)}, ""},
		{peer.Everyone, nobody, nobody, nil, ""},
	} {
		s, path := fake.Serve(t, &fake.Host{}, server.Config{Audience: c.audience})
		for p := path; p != os.TempDir() && len(p) > 1; p = filepath.Dir(p) {
			if err := os.Chmod(p, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		r := rawAs(t, path, c.uid, c.gid, c.groups...)
		r.put(proto.AppendFrame(nil, proto.OpHello, 0, 1, proto.Encode(goodHello())))
		h, body, err := r.next()
		switch {
		case err != nil || h.Op != proto.OpHello:
			t.Fatalf("%+v: frame %+v: %v", c, h, err)
		case c.refused == "" && h.Flags&proto.FlagError != 0:
			t.Errorf("%+v: refused: %v", c, proto.DecodeError(body))
		case c.refused != "" && (h.Flags&proto.FlagError == 0 || !strings.Contains(proto.DecodeError(body).Error(), c.refused) ||
			!fake.IsCode(proto.DecodeError(body), command.Access)):
			t.Errorf("%+v: the answer is %v, want %q", c, proto.DecodeError(body), c.refused)
		}
		if c.refused == "" {
			continue
		}
		for range 2 * server.MaxRefusals {
			rawAs(t, path, c.uid, c.gid, c.groups...)
		}
		good, err := client.Dial(context.Background(), path, client.Options{}) // they do not keep others out
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if n := s.Clients(); n > server.MaxRefusals+1 {
			t.Errorf("%+v: %d connections of those turned away are open, want at most %d", c, n-1, server.MaxRefusals)
		}
		_ = good.Close()
	}
}
