package server_test

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
)

// TestMoved: a process that takes over an attachment must show its memory to the driver first. (make -C clib check
// tests that the child of a fork does.)
func TestMoved(t *testing.T) {
	for _, path := range []command.MemoryPath{command.MemoryProcessVM, command.MemoryCopier} {
		t.Run(path.String(), func(t *testing.T) {
			_, socket := fake.Serve(t, &fake.Host{}, server.Config{})
			mem, at := fake.Memory(t, 64)
			nonce := [16]byte{1, 2, 3}
			copy(mem, nonce[:])
			q := goodHello()
			q.Features, q.Path = proto.FeatureCopier|proto.FeatureProcessVM, path
			q.ProbeAddr, q.Nonce = at, nonce
			r := dialRaw(t, socket)
			r.put(proto.AppendFrame(nil, proto.OpHello, 0, 1, proto.Encode(q)))
			for op := proto.Opcode(0); op != proto.OpArena; {
				h, _, err := r.next()
				if err != nil {
					t.Fatal(err)
				}
				if h.Flags&proto.FlagError != 0 {
					t.Skip("the kernel does not let a process reach its own memory")
				}
				op = h.Op
			}
			ask := func(nonce [16]byte) bool {
				r.put(proto.AppendFrame(nil, proto.OpMoved, 0, 7, proto.Encode(proto.Moved{ProbeAddr: q.ProbeAddr, Nonce: nonce})))
				h, body, err := r.next()
				if err != nil || h.Op != proto.OpMoved || h.ID != 7 {
					t.Fatalf("got frame %+v (%v), want the answer to moved", h, err)
				}
				if e := proto.AsError(proto.DecodeError(body)); h.Flags&proto.FlagError != 0 && e.Code != command.Unsupported {
					t.Fatal(e)
				}
				return h.Flags&proto.FlagError == 0
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
			r.put(proto.AppendFrame(nil, proto.OpMoved, 0, 8, []byte{1}))
			if r.end() == "" {
				t.Error("a body of the wrong size was accepted")
			}
		})
	}
}
