package ipc

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

// TestMoved: a process that takes over an attachment must show its memory to the driver first. (make -C clib check
// tests that the child of a fork does.)
func TestMoved(t *testing.T) {
	for _, path := range []command.MemoryPath{command.MemoryProcessVM, command.MemoryCopier} {
		t.Run(path.String(), func(t *testing.T) {
			_, socket := serve(t, &fakeHost{}, ServerConfig{})
			mem, at := ordinary(t, 64)
			nonce := [16]byte{1, 2, 3}
			copy(mem, nonce[:])
			q := goodHello()
			q.Features, q.Path = featureCopier|featureProcessVM, path
			q.ProbeAddr, q.Nonce = at, nonce
			r := dialRaw(t, socket)
			r.put(appendFrame(nil, opHello, 0, 1, encode(q)))
			for op := opcode(0); op != opArena; {
				h, _, err := r.next()
				if err != nil {
					t.Fatal(err)
				}
				if h.Flags&flagError != 0 {
					t.Skip("the kernel does not let a process reach its own memory")
				}
				op = h.Op
			}
			ask := func(nonce [16]byte) bool {
				r.put(appendFrame(nil, opMoved, 0, 7, encode(moved{ProbeAddr: q.ProbeAddr, Nonce: nonce})))
				h, body, err := r.next()
				if err != nil || h.Op != opMoved || h.ID != 7 {
					t.Fatalf("got frame %+v (%v), want the answer to moved", h, err)
				}
				if e := asError(decodeError(body)); h.Flags&flagError != 0 && e.Code != command.Unsupported {
					t.Fatal(e)
				}
				return h.Flags&flagError == 0
			}
			if ask([16]byte{9}) != (path == command.MemoryCopier) {
				t.Error("a wrong nonce was accepted with process_vm, or refused with a copier, which needs none")
			}
			if !ask(nonce) {
				t.Error("the right nonce was refused")
			}
			if path == command.MemoryProcessVM && mem[16] == 0 {
				t.Error("the driver did not write its probe behind the nonce")
			}
			r.put(appendFrame(nil, opMoved, 0, 8, []byte{1}))
			if r.end() == "" {
				t.Error("a body of the wrong size was accepted")
			}
		})
	}
}
