package server

import (
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/stream"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestNewsWaitForTheProgram: frames that a program has not asked for are sent only as fast as it takes them, so that
// a program without a reading thread is not disconnected for a full stream.
func TestNewsWaitForTheProgram(t *testing.T) {
	a, b := connected(t)
	cfg := Config{}
	cfg.defaults()
	n := newSession(&Server{cfg: cfg}, a)
	mem, err := n.arenas.make(0, ring.DoorbellGeometry(64).Size())
	if err != nil {
		t.Fatal(err)
	}
	defer n.arenas.closeAll()
	side := &neighbour{n: n}
	if side.words, err = ring.OpenNews(n.arenas.first()); err != nil {
		t.Fatal(err)
	}
	program, err := ring.OpenNews(mem)
	if err != nil {
		t.Fatal(err)
	}
	send := func() error { return side.send(proto.OpDrop, proto.Encode(proto.DropBody{Program: 1})) }
	for range maxUntaken {
		if err := send(); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- send() }()
	select {
	case err := <-done:
		t.Fatalf("frame %d was sent while all earlier ones were untaken: %v", maxUntaken+1, err)
	case <-time.After(50 * time.Millisecond):
	}
	program.Take()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	go func() { done <- send() }()
	n.cancel(errStopping)
	if err := <-done; !errors.Is(err, errStopping) {
		t.Errorf("the wait in a session that ends: error %v, want stopping", err)
	}
	in := stream.NewReader(b)
	defer in.Close()
	var buf []byte
	for range maxUntaken + 1 {
		if h, _, err := proto.ReadFrame(in, &buf, proto.MaxFrame); err != nil || h.Op != proto.OpDrop {
			t.Fatalf("got frame %+v (%v), want opDrop", h, err)
		}
	}
}

// connected returns the two ends of a connection.
func connected(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if b, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)); err != nil {
		t.Fatal(err)
	}
	if a, err = l.AcceptUnix(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}
