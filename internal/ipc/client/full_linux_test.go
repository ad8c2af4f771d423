package client

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/ipc/stream"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestDepartureWithFullTrack: a program that ends while its track is full of answers is gone at once; the driver does
// not wait for it to take them.
func TestDepartureWithFullTrack(t *testing.T) {
	h := &fake.Host{}
	_, path := fake.Serve(t, h, server.Config{WriteTimeout: time.Hour})
	c := dial(t, path, Options{})
	c.tracks.owner.Own() // answers are not taken
	defer c.tracks.owner.Disown()
	requests, answers := stream.OpenTrack(c.tracks.mem), c.tracks.mem[stream.TrackSize():]
	for id := uint64(1); waiting(answers) < stream.TrackBytes-stream.TrackBytes/16; id++ {
		if ok, err := requests.Put(proto.OpQueryQP, 0, id, proto.Encode(proto.HandleArgs{})); err != nil {
			t.Fatal(err)
		} else if !ok {
			time.Sleep(time.Millisecond)
		}
		if !requests.Wakes() {
			continue
		}
		if err := c.out.Stream(proto.OpWakeUp, 0, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.conn.Close()
	await.Eventually(t, "its session has ended", func() bool { return h.Count() == 0 })
}

// waiting returns how many bytes wait to be taken from the track in mem.
func waiting(mem []byte) int {
	word := func(at int) uint32 { return atomic.LoadUint32((*uint32)(unsafe.Pointer(&mem[at]))) }
	return int(word(stream.TrackProducer) - word(stream.TrackConsumer))
}
