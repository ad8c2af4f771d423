package capture

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func newTap(t testing.TB, snap, size int) *Tap {
	t.Helper()
	tap, err := NewTap(snap, size)
	if err != nil {
		t.Fatal(err)
	}
	return tap
}

// TestTapAgainstAModel: in any order of puts and takes, packets come out in order and cut to the snap length. Each
// packet that found no room is counted in the sum and with the next packet that did.
func TestTapAgainstAModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		snap := rapid.SampledFrom([]int{0, 1, 64, 4096}).Draw(r, "snap")
		tap := &Tap{snap: snap, ring: make([]byte, 4096), wake: make(chan struct{}, 1)} // small, to reach its end often
		if snap == 0 {
			tap.snap = MaxSnap
		}
		var want []Packet
		var taken, missed, gap uint64
		used := 0
		for i := range rapid.IntRange(1, 200).Draw(r, "steps") {
			if rapid.Bool().Draw(r, "put") {
				n := rapid.IntRange(0, 1500).Draw(r, "length")
				cut := rapid.IntRange(0, n).Draw(r, "cut")
				data := bytes.Repeat([]byte{byte(i)}, n)
				at := time.Unix(int64(i), 5)
				tap.put(at, flagOutbound, data[:cut], data[cut:])
				keep := min(n, tap.snap)
				size := (recordHeader + keep + 7) / 8 * 8
				if used+size > 4096 {
					missed, gap = missed+1, gap+1
					continue
				}
				used += size
				want = append(want, Packet{Time: at, Length: n, Outbound: true, Missed: gap, Data: data[:keep]})
				taken, gap = taken+1, 0
				continue
			}
			var got Packet
			if ok := tap.Next(&got); ok != (len(want) > 0) {
				r.Fatalf("a packet: %v, %d are there", ok, len(want))
			} else if !ok {
				continue
			}
			if d := cmp.Diff(want[0], got, cmpopts.EquateEmpty()); d != "" {
				r.Fatal(d)
			}
			used -= (recordHeader + len(got.Data) + 7) / 8 * 8
			want = want[1:]
		}
		if a, b := tap.Counts(); a != taken || b != missed {
			r.Fatalf("counts %d taken, %d missed, want %d and %d", a, b, taken, missed)
		}
	})
}

// TestTapWakes: the reader is woken once for a batch, and not if there is no packet.
func TestTapWakes(t *testing.T) {
	tap := newTap(t, 0, 0)
	tap.signal()
	if len(tap.wake) != 0 {
		t.Error("the reader was woken without a packet")
	}
	tap.put(time.Now(), 0, []byte("a"))
	tap.put(time.Now(), 0, []byte("b"))
	tap.signal()
	tap.signal()
	if len(tap.wake) != 1 {
		t.Error("the reader was not woken once for a batch")
	}
}

// TestTapBetweenGoroutines: one goroutine puts while another takes; packets come whole and in order, and the counts
// agree.
func TestTapBetweenGoroutines(t *testing.T) {
	tap := newTap(t, 0, MinRing)
	const n = 20000
	go func() {
		for i := range n {
			tap.put(time.Unix(0, int64(i)), 0, bytes.Repeat([]byte{byte(i)}, i%1000))
			tap.signal()
		}
		tap.put(time.Unix(1, 0), 0, nil)
		for {
			if taken, missed := tap.Counts(); taken+missed > n+1 || tap.tail.Load() == tap.head.Load() {
				break
			}
			time.Sleep(time.Millisecond)
		}
		tap.put(time.Unix(1, 0), 0, nil) // this one finds room
		tap.signal()
	}()
	var p Packet
	last, seen, gaps := int64(-1), uint64(0), uint64(0)
	for {
		if !tap.Next(&p) {
			<-tap.Wake()
			continue
		}
		seen, gaps = seen+1, gaps+p.Missed
		if p.Length == 0 && p.Time.Equal(time.Unix(1, 0)) {
			if seen+gaps > n+1 {
				break
			}
			continue
		}
		i := p.Time.UnixNano()
		if i <= last || p.Length != int(i)%1000 || !bytes.Equal(p.Data, bytes.Repeat([]byte{byte(i)}, int(i)%1000)) {
			t.Fatalf("packet %d after %d: %d bytes", i, last, p.Length)
		}
		last = i
	}
	if taken, missed := tap.Counts(); taken != seen || missed != gaps {
		t.Errorf("the tap counts %d taken and %d missed; %d were read, with %d missed between", taken, missed, seen, gaps)
	}
}

func TestTapSizes(t *testing.T) {
	for _, c := range []struct {
		snap, ring int
		field      string
	}{
		{-1, 0, "snap length"}, {MaxSnap + 1, 0, "snap length"}, {0, 1, "ring"}, {0, maxRing + 1, "ring"},
	} {
		_, err := NewTap(c.snap, c.ring)
		var size *sizeError
		if !errors.As(err, &size) || size.Field != c.field {
			t.Errorf("snap %d, ring %d: %v, want an error of the %s", c.snap, c.ring, err, c.field)
		}
	}
}
