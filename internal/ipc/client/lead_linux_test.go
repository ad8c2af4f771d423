package client

import (
	"context"
	"encoding/binary"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/ipc/stream"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestHostileTrack: a program that writes nonsense into its track is told why and disconnected; others are still
// served.
func TestHostileTrack(t *testing.T) {
	h := &fake.Host{}
	_, path := fake.Serve(t, h, server.Config{})
	good := dial(t, path, Options{})
	for _, tt := range []struct {
		name   string
		write  func(mem []byte)
		reason string
	}{
		{"producer", func(mem []byte) { binary.NativeEndian.PutUint32(mem[stream.TrackProducer:], 1<<30) }, "ahead"},
		{"operation", func(mem []byte) { put(stream.OpenTrack(mem), 999, 0, nil) }, "operation 999"},
		{"flags", func(mem []byte) { put(stream.OpenTrack(mem), proto.OpAllocPD, proto.FlagResponse, nil) }, "flags"},
		{"credit not due", func(mem []byte) { put(stream.OpenTrack(mem), proto.OpCredit, 0, proto.Encode(proto.Credit{Events: 1})) },
			"credits"},
		{"consumer of the driver's", func(mem []byte) {
			binary.NativeEndian.PutUint32(mem[stream.TrackSize()+stream.TrackConsumer:], 1<<20)
			put(stream.OpenTrack(mem), proto.OpAllocPD, 0, proto.Encode(proto.AdapterArgs{}))
		}, "consumer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bad := dial(t, path, Options{})
			if bad.tracks.mem == nil {
				t.Fatal("the client has no tracks")
			}
			tt.write(bad.tracks.mem)
			if err := bad.out.Stream(proto.OpWakeUp, 0, 0, nil); err != nil {
				t.Fatal(err)
			}
			await.Eventually(t, "disconnected", func() bool { return bad.calls.failure() != nil })
			if err := bad.calls.failure(); !fake.IsCode(err, command.Removed) || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("error %v, want removed, with %q", err, tt.reason)
			}
			if _, err := good.AllocPD(ctx, 0); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func put(t *stream.Track, op proto.Opcode, flags uint16, body []byte) {
	_, _ = t.Put(op, flags, 1, body)
}

// TestCallersLeadInTurn: every call ends with its own answer, however many there are at a time and whichever give up
// meanwhile, and events arrive beside them in order.
func TestCallersLeadInTurn(t *testing.T) {
	h := &fake.Host{}
	_, path := fake.Serve(t, h, server.Config{})
	c := dial(t, path, Options{})
	s := h.Only(t)
	const callers, calls, events = 100, 200, 2000
	go func() {
		for n := range uint64(events) {
			s.Pending <- command.Event{Context: n}
		}
	}()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := range calls {
				ctx, cancel := ctx, context.CancelFunc(func() {})
				if (i+n)%7 == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(n)*time.Microsecond)
				}
				_, err := c.AllocPD(ctx, 0)
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				cancel()
				if _, err := c.AllocPD(context.Background(), 1); !fake.IsCode(err, command.NotFound) {
					t.Errorf("a call got another one's answer: %v", err)
				}
			}
		})
	}
	out := make([]command.Event, 64)
	for next := uint64(0); next < events; {
		n, err := c.Events(ctx, out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range out[:n] {
			if e.Context != next {
				t.Fatalf("event %d, want %d", e.Context, next)
			}
			next++
		}
	}
	wg.Wait()
}
