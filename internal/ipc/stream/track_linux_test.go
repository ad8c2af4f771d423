package stream

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// newTrack returns both ends of a track in memory of this process.
func newTrack() (put, take *Track, mem []byte) {
	words := make([]uint64, TrackSize()/8)
	mem = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), TrackSize())
	return OpenTrack(mem), OpenTrack(mem), mem
}

// TestTrackCarriesFrames: frames of any length come out as they went in, also where they wrap, until there is no
// room; what was taken makes room again.
func TestTrackCarriesFrames(t *testing.T) {
	put, take, _ := newTrack()
	var buf []byte
	r := rand.New(rand.NewPCG(1, 2))
	var waiting [][]byte
	wrote, took := 0, 0
	for wrote < 20*TrackBytes {
		body := make([]byte, r.IntN(longFrame-proto.HeaderSize))
		for i := range body {
			body[i] = byte(wrote + i)
		}
		ok, err := put.Put(proto.OpEvents, proto.FlagError, uint64(wrote), body)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			waiting = append(waiting, body)
			wrote += proto.HeaderSize + len(body)
			continue
		}
		if len(waiting) < 4 {
			t.Fatalf("no room behind only %d frames", len(waiting))
		}
		for _, want := range waiting {
			h, got, ok, err := take.Take(&buf, proto.MaxFrame)
			if err != nil || !ok || h.Op != proto.OpEvents || h.Flags != proto.FlagError || h.ID != uint64(took) ||
				!bytes.Equal(got, want) {
				t.Fatalf("frame at %d: %+v, %d bytes, %v %v", took, h, len(got), ok, err)
			}
			took += proto.HeaderSize + len(want)
		}
		waiting = waiting[:0]
		if !take.Empty() {
			t.Fatal("the track is not empty after all frames were taken")
		}
	}
}

// TestTrack_WakesASleepingConsumerOnce: a consumer that sleeps is woken once; one that does not sleep is not woken.
func TestTrack_WakesASleepingConsumerOnce(t *testing.T) {
	put, take, _ := newTrack()
	if put.Wakes() {
		t.Error("the consumer was woken while it polls")
	}
	take.Sleep()
	if !put.Wakes() || put.Wakes() {
		t.Error("the sleeping consumer was not woken exactly once")
	}
	take.Sleep()
	take.Wake()
	if put.Wakes() {
		t.Error("the consumer was woken after it had ended its sleep")
	}
}

// TestTrackNonsense: impossible indices and lengths in a track are errors, at either end.
func TestTrackNonsense(t *testing.T) {
	for _, tt := range []struct {
		name             string
		producer, length uint32
		want             string
	}{
		{"too far ahead", TrackBytes + 8, 16, "ahead"},
		{"behind", ^uint32(7), 16, "ahead"},
		{"not a multiple", 20, 16, "multiples"},
		{"half a header", 8, 16, "ahead"},
		{"length 0", 64, 0, "length 0"},
		{"more than is there", 64, 72, "length 72"},
		{"more than is allowed", TrackBytes, proto.MaxRequest + 1, "length"},
		{"4 GB", TrackBytes, ^uint32(0), "length"},
	} {
		put, take, mem := newTrack()
		binary.NativeEndian.PutUint32(mem[TrackProducer:], tt.producer)
		binary.NativeEndian.PutUint32(mem[trackHeader:], tt.length)
		var buf []byte
		if _, _, ok, err := take.Take(&buf, proto.MaxRequest); ok || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: took a frame: %v, error %v; want an error with %q", tt.name, ok, err, tt.want)
		}
		binary.NativeEndian.PutUint32(mem[TrackConsumer:], 8)
		if _, err := put.Put(proto.OpAllocPD, 0, 1, nil); err == nil {
			t.Errorf("%s: a consumer ahead of its producer is no error", tt.name)
		}
	}
}

// FuzzTrack: whatever a track contains, what is taken from it is within the limits, and taking ends.
func FuzzTrack(f *testing.F) {
	f.Add(uint32(0), uint32(64), []byte{16, 0, 0, 0, 35})
	f.Add(uint32(TrackBytes-8), uint32(32), bytes.Repeat([]byte{24, 0, 0, 0}, 40))
	f.Add(uint32(8), uint32(1<<31), []byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, at, ahead uint32, b []byte) {
		_, take, mem := newTrack()
		at &^= trackUnit - 1
		take.at = at
		binary.NativeEndian.PutUint32(mem[TrackProducer:], at+ahead)
		copy(mem[trackHeader+at%TrackBytes:], b)
		copy(mem[trackHeader:], b)
		var buf []byte
		for n := 0; ; n++ {
			h, body, ok, err := take.Take(&buf, proto.MaxRequest)
			if err != nil || !ok {
				return
			}
			if len(body) != int(h.Length)-proto.HeaderSize || len(body) > proto.MaxRequest || n > TrackBytes/proto.HeaderSize {
				t.Fatalf("frame %d: %+v with %d bytes", n, h, len(body))
			}
		}
	})
}
