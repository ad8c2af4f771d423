package remotecopy

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/transport"
)

// owner is a program that copies when the test lets it and has room for a number of copies.
type owner struct {
	memory.Accessor
	room    int
	started []uint64 // tags, in the order of Start
	held    []uint64 // not flushed yet: the program does not see them
	ended   int      // how many of started have ended, from the first
	told    int      // how many of those Finish has reported
}

func (o *owner) Start(t *memory.Transfer) bool {
	if len(o.started)-o.ended >= o.room {
		return false
	}
	o.started = append(o.started, t.Tag)
	o.held = append(o.held, t.Tag)
	return true
}

func (o *owner) Flush()     { o.held = nil }
func (o *owner) Limit() int { return 64 << 10 }

// let makes the program finish n more of the copies that it sees.
func (o *owner) let(n int) { o.ended = min(o.ended+n, len(o.started)-len(o.held)) }

func (o *owner) Finish(out []memory.Finished) int {
	n := 0
	for ; n < len(out) && o.told < o.ended; n++ {
		out[n] = memory.Finished{Tag: o.started[o.told]}
		o.told++
	}
	return n
}

// told records what an engine was told, by tag.
type told struct {
	tags []uint64
	errs []error
}

func (e *told) Copied(_ clock.Time, done []memory.Finished) {
	for _, f := range done {
		e.tags, e.errs = append(e.tags, f.Tag), append(e.errs, f.Err)
	}
}

func copyOf(o memory.Accessor, tag uint64) *transport.Copy {
	return &transport.Copy{Region: &memory.Region{Remote: o}, Transfer: memory.Transfer{Tag: tag}}
}

func newCopies() *Copies {
	d := &Copies{}
	d.Init()
	return d
}

// TestCopiesWaitForRoom: copies that an owner has no room for wait in order, and a later copy does not overtake them.
func TestCopiesWaitForRoom(t *testing.T) {
	d, e, o := newCopies(), &told{}, &owner{room: 1}
	for tag := range uint64(3) {
		d.begin(0, e, copyOf(o, tag))
	}
	o.Flush()
	if !slices.Equal(o.started, []uint64{0}) || d.Idle() {
		t.Fatalf("started %v, idle %v", o.started, d.Idle())
	}
	o.let(1)
	o.room = 2
	d.begin(0, e, copyOf(o, 3)) // there is room, but others wait
	if !slices.Equal(o.started, []uint64{0}) {
		t.Fatalf("started %v: a copy overtook those that wait", o.started)
	}
	if !d.proceed(0, e) || !slices.Equal(e.tags, []uint64{0}) || !slices.Equal(o.started, []uint64{0, 1, 2}) || o.held != nil {
		t.Fatalf("told %v, started %v, not flushed %v", e.tags, o.started, o.held)
	}
	o.let(2)
	d.proceed(0, e)
	o.let(1)
	if d.proceed(0, e); !slices.Equal(e.tags, []uint64{0, 1, 2, 3}) || !d.Idle() {
		t.Errorf("told %v, idle %v", e.tags, d.Idle())
	}
	if d.proceed(0, e) {
		t.Error("there was something to do when all had ended")
	}
}

// TestSlowOwnerDelaysItself: an owner that copies nothing delays only its own copies.
func TestSlowOwnerDelaysItself(t *testing.T) {
	d, e := newCopies(), &told{}
	slow, quick := &owner{room: 1}, &owner{room: 8}
	for tag := range uint64(3) {
		d.begin(0, e, copyOf(slow, tag))
		d.begin(0, e, copyOf(quick, 100+tag))
	}
	quick.Flush()
	quick.let(3)
	if d.proceed(0, e); !slices.Equal(e.tags, []uint64{100, 101, 102}) || d.Idle() {
		t.Errorf("told %v, idle %v", e.tags, d.Idle())
	}
}

// TestCopyWithoutOwner: a copy in memory whose owner is gone ends at once with an error.
func TestCopyWithoutOwner(t *testing.T) {
	d, e := newCopies(), &told{}
	if d.begin(0, e, copyOf(nil, 7)); !slices.Equal(e.tags, []uint64{7}) || !errors.Is(e.errs[0], memory.ErrGone) || !d.Idle() {
		t.Errorf("told %v %v, idle %v", e.tags, e.errs, d.Idle())
	}
}

// TestEveryCopyEndsOnce: however slow owners are and whatever room they have, each copy ends once, those of one owner
// in order, and then nothing is left.
func TestEveryCopyEndsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, e := newCopies(), &told{}
		owners := make([]*owner, rapid.IntRange(1, 4).Draw(t, "owners"))
		for i := range owners {
			owners[i] = &owner{room: rapid.IntRange(1, 2*batch).Draw(t, "room")}
		}
		given := make([]uint64, len(owners))
		step := func(i int) {
			for range rapid.IntRange(0, 2*batch).Draw(t, "copies") {
				d.begin(0, e, copyOf(owners[i], uint64(i)<<32|given[i]))
				given[i]++
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			i := rapid.IntRange(0, len(owners)-1).Draw(t, "owner")
			step(i)
			owners[i].let(rapid.IntRange(0, 2*batch).Draw(t, "finished"))
			d.proceed(0, e)
		}
		for rounds := 0; !d.Idle(); rounds++ {
			if rounds > 1<<14 {
				t.Fatal("the copies do not end")
			}
			for _, o := range owners {
				o.let(1 << 20)
			}
			d.proceed(0, e)
		}
		next := make([]uint64, len(owners))
		for _, tag := range e.tags {
			if i := tag >> 32; uint64(uint32(tag)) != next[i] {
				t.Fatalf("owner %d: copy %d ended, want %d", i, uint32(tag), next[i])
			} else {
				next[i]++
			}
		}
		if !slices.Equal(next, given) {
			t.Fatalf("ended %v of %v", next, given)
		}
	})
}
