package netspace_test

import (
	"net"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/os/netspace"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestOfPeer: the namespace is that in which the program has made its socket, whichever one this process, or meanwhile the program, is in.
func TestOfPeer(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	own, err := netspace.Own()
	if err != nil {
		t.Fatal(err)
	}
	connected := func() (netspace.ID, *net.UnixConn) {
		t.Helper()
		c, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		id, err := netspace.OfPeer(c)
		if err != nil {
			t.Fatal(err)
		}
		return id, c
	}
	here, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	if id, _ := connected(); id != own {
		t.Errorf("a program here: %v, want %v", id, own)
	}
	type visit struct {
		there netspace.ID
		conn  net.Conn
		err   error
	}
	went := make(chan visit)
	go func() {
		runtime.LockOSThread() // the thread ends with its goroutine
		var v visit
		if v.err = unix.Unshare(unix.CLONE_NEWNET); v.err == nil {
			v.there, v.err = netspace.Own()
		}
		if v.err == nil {
			v.conn, v.err = net.Dial("unix", l.Addr().String())
		}
		if v.err == nil {
			v.err = unix.Unshare(unix.CLONE_NEWNET) // it goes on to another one
		}
		went <- v
	}()
	v := <-went
	if v.err != nil {
		t.Fatal(v.err)
	}
	defer v.conn.Close()
	id, c := connected()
	if id != v.there || id == own {
		t.Errorf("a program elsewhere: %v, want %v, which is not %v", id, v.there, own)
	}
	c.Close()
	if _, err := netspace.OfPeer(c); err == nil {
		t.Error("of a closed connection")
	}
}
