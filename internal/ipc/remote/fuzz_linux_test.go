package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// driven starts a driver with an adapter, and returns how a relay attaches to it.
func driven(t testing.TB) (*server.Server, Dial) {
	t.Helper()
	h, err := device.NewHost(device.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.AddAdapter(device.AdapterConfig{Addr: loopback.Addrs(1)[0]}); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "relay")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.DeviceHost(h), server.Config{CopierTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		_ = s.Close()
		_ = h.Close()
		_ = os.RemoveAll(dir)
	})
	return s, func(ctx context.Context, o client.Options) (*client.Client, error) {
		return client.Dial(ctx, socket, o)
	}
}

// said is a message as it is on the stream.
func said(k kind, program uint32, parts ...[]byte) []byte {
	b := make([]byte, headerSize)
	b[4] = byte(k)
	binary.LittleEndian.PutUint32(b[8:], program)
	for _, p := range parts {
		b = append(b, p...)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return b
}

func asks(program uint32, id uint64, op proto.Opcode, body []byte) []byte {
	return said(request, program, proto.Encode(requestHead{ID: id, Op: op}), body)
}

// hostile are what agents may send behind their greeting: what is right, in part, and what is not.
func hostile() [][]byte {
	start := said(open, 1, proto.Encode(opening{}))
	return [][]byte{
		{}, make([]byte, 100), proto.Encode(greeting{Magic: magic}), start, append(start, start...),
		append(start, said(posted, 1, proto.Encode(postedHead{Queue: 1, Count: 1 << 31}), make([]byte, 64))...),
		append(start, said(copied, 1, proto.Encode(copiedHead{Index: 7, Reached: 1}), make([]byte, 64))...),
		append(start, said(closing, 1)...), append(start, said(cancel, 1, make([]byte, 8))...),
		append(start, asks(1, 1, proto.OpAllocPD, proto.Encode(proto.AdapterArgs{}))...),
		append(start, asks(1, 1, proto.OpCreateCQ, proto.Encode(command.CreateCQ{Depth: 8, Channel: 99}))...),
		append(start, asks(1, 1, proto.OpResizeCQ, nil)...), append(start, asks(1, 1, proto.OpInterfaces, nil)...),
		append(start, asks(1, 1, proto.OpCreateChannel, proto.Encode(command.CreateChannel{Kind: command.Connections}))...),
		append(start, asks(1, 1, proto.OpHello, nil)...), append(start, asks(1, 1, proto.OpAllocSegment, make([]byte, 8))...),
		append(start, asks(1, 1, proto.OpRegisterMemory, make([]byte, 40))...),
		append(start, asks(1, 1, proto.OpDestroy, make([]byte, 8))...),
		append(start, asks(1, 1, proto.OpAdapters, make([]byte, 5000))...), append(start, asks(1, 1, 0xffff, nil)...),
		{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 1, 0, 0, 0}, {12, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0},
	}
}

// FuzzRelay: whatever an agent sends, what it has attached goes with its stream, and nobody else notices.
func FuzzRelay(f *testing.F) {
	for _, b := range hostile() {
		f.Add(b)
	}
	s, dial := driven(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		own, other := net.Pipe()
		done := make(chan error, 1)
		go func() { done <- Relay(context.Background(), own, dial, slog.New(slog.DiscardHandler)) }()
		go func() { _, _ = io.Copy(io.Discard, other) }()
		_ = other.SetWriteDeadline(time.Now().Add(await.Limit))
		if _, err := other.Write(append(proto.Encode(greeting{Magic: magic}), b...)); err != nil {
			t.Errorf("it is not read: %v", err)
		}
		other.Close()
		<-done
		await.Eventually(t, "nobody is attached", func() bool { return s.Clients() == 0 })
	})
}

// TestRelay_DoesNotRead: an agent that reads nothing ends with its stream, or with the relay, however much it has asked for.
func TestRelay_DoesNotRead(t *testing.T) {
	s, dial := driven(t)
	own, other := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Relay(ctx, own, dial, slog.New(slog.DiscardHandler)) }()
	go func() {
		_, _ = other.Write(proto.Encode(greeting{Magic: magic})) // the answer is not taken
		_, _ = other.Write(said(open, 1, proto.Encode(opening{})))
	}()
	var b [1]byte
	if _, err := other.Read(b[:]); err != nil { // the first of the answer
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	other.Close()
	await.Eventually(t, "nobody is attached", func() bool { return s.Clients() == 0 })
}

// FuzzAgent: whatever a relay sends, an agent neither fails nor waits.
func FuzzAgent(f *testing.F) {
	queue := command.Queue{Handle: 5, Depth: 8, Stride: 64, Ring: command.Ring{Size: 1024}}
	for _, m := range [][]byte{
		said(open, 1), said(closing, 1, proto.EncodeError(errLost)), said(arena, 1, proto.Encode(proto.ArenaBody{Size: 65536})),
		append(said(arena, 1, proto.Encode(proto.ArenaBody{Size: 65536})),
			said(answer, 1, proto.Encode(answerHead{ID: 1}), proto.Encode(queue))...),
		said(complete, 1, proto.Encode(completeHead{CQ: 5}), make([]byte, 64*9)),
		said(taken, 1, proto.Encode(takenBody{Queue: 5, Index: 9})),
		said(events, 1, make([]byte, 320)), said(raised, 1, make([]byte, 328)),
		said(copying, 1, proto.Encode(copyingHead{Kind: 1, Length: 1 << 31})),
		said(answer, 1, proto.Encode(answerHead{ID: 2, Failed: 1}), proto.EncodeError(errLost)),
	} {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a := &Agent{s: nowhere{}, out: writer{w: io.Discard}, log: slog.New(slog.DiscardHandler), programs: map[uint32]*program{}}
		p := newProgram(a, device.ClientConfig{NewArena: func(_ uint32, size int) ([]byte, error) {
			if size > 1<<20 {
				return nil, command.Errorf(command.Exhausted, "too large for this test")
			}
			return make([]byte, size+64), nil
		}, FreeArena: func(uint32, []byte) {}})
		a.programs[1] = p
		for i, op := range []proto.Opcode{proto.OpCreateCQ, proto.OpCreateSRQ, proto.OpCreateQP, proto.OpDestroy, proto.OpRegisterMemory,
			proto.OpCreateChannel} {
			p.waiting[uint64(i+1)] = asked{op: op, body: make([]byte, 56), told: make(chan reply, 1)}
		}
		buf := make([]byte, maxMessage)
		for r := bytes.NewReader(b); ; {
			m, err := read(r, buf)
			if err != nil || a.message(m) != nil {
				break
			}
		}
		p.end(errLost)
	})
}

type nowhere struct{}

func (nowhere) Read([]byte) (int, error)    { return 0, io.EOF }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Close() error                { return nil }
