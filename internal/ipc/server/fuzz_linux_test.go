package server_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// FuzzSession: whatever an attached program sends, the driver continues and keeps nothing of it. The input is cut
// into frames of an operation, an id and a body each, so that most of them get as far as the commands.
func FuzzSession(f *testing.F) {
	f.Add([]byte{byte(proto.OpAllocPD), 1, 4, 0, 0, 0, 0})
	f.Add([]byte{byte(proto.OpCMListen), 1, 8, 0, 0, 0, 0, 0, 0, 0, 0, byte(proto.OpCancel), 1, 0})
	f.Add(append([]byte{byte(proto.OpRegisterMemory), 2, 40}, make([]byte, 40)...))
	f.Add([]byte{byte(proto.OpAllocSegment), 3, 8, 0, 16, 0, 0, 0, 0, 0, 0, byte(proto.OpFreeSegment), 4, 4, 1, 0, 0, 0})
	f.Add([]byte{byte(proto.OpCredit), 0, 4, 255, 255, 255, 255})
	h := &fake.Host{}
	path := filepath.Join(f.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		f.Fatal(err)
	}
	s, err := server.New(h, server.Config{Memory: memoryFor(1<<20, 1<<30)})
	if err != nil {
		f.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	f.Cleanup(func() { s.Close(); <-served })
	good := dial(f, path, client.Options{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := dialRaw(t, path).hello()
		for len(b) >= 3 {
			op, id, n := proto.Opcode(b[0]), uint64(b[1]), min(int(b[2]), len(b)-3)
			r.put(proto.AppendFrame(nil, op, 0, id, b[3:3+n]))
			b = b[3+n:]
		}
		r.put(b)
		r.Close()
		if _, err := good.AllocPD(ctx, 0); err != nil {
			t.Fatal(err)
		}
		if err := good.Destroy(ctx, command.KindCQ, 1<<30); !fake.IsCode(err, command.NotFound) {
			t.Fatal(err)
		}
		await.Eventually(t, "torn down", func() bool { return h.Count() == 1 })
	})
}
