package ipc

import (
	"errors"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/ring"
)

// What a program has not asked for is sent as fast as it takes it: one that has no
// thread which reads is not ended for a full stream.
func TestNewsWaitForTheProgram(t *testing.T) {
	a, b := streams(t)
	cfg := ServerConfig{}
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
	send := func() error { return side.send(opDrop, encode(dropBody{Program: 1})) }
	for range maxUntaken {
		if err := send(); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- send() }()
	select {
	case err := <-done:
		t.Fatalf("frame %d was sent with all others untaken: %v", maxUntaken+1, err)
	case <-time.After(50 * time.Millisecond):
	}
	program.Take()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	go func() { done <- send() }()
	n.cancel(errStopping)
	if err := <-done; !errors.Is(err, errStopping) {
		t.Errorf("a session that ends: %v", err)
	}
	in := &fdReader{from: taker{conn: b}}
	defer in.close()
	var buf []byte
	for range maxUntaken + 1 {
		if h, _, err := readFrame(in, &buf, maxFrame); err != nil || h.Op != opDrop {
			t.Fatalf("%+v, %v", h, err)
		}
	}
}
