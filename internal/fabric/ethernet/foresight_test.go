package ethernet

import (
	"testing"
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
)

// What a fabric is asked to foresee changes nothing that happens in it, and each port is asked for the priorities that it has had since
// the last time, and for no others.
func TestForesightOfWhatPortsHaveHad(t *testing.T) {
	f, taken := &Fabric{}, 0
	f.Deliver = func(_ clock.Time, _ End, r Ref) { taken++; f.Store.Drop(r) }
	s, err := NewStation(&f.Store, StationConfig{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewStation(&f.Store, StationConfig{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := f.AddStation(s), f.AddStation(o)
	if err := f.Connect(End{a, 0}, End{b, 0}); err != nil {
		t.Fatal(err)
	}
	foresee := func() {
		for step := range 5 {
			f.Prefetch(step, clock.Never)
		}
	}
	foresee()
	for range 3 { // the second waits for the first
		if !f.SendAt(0, a, 5, f.Store.Put(make([]byte, 100), 0)) {
			t.Fatal("no room")
		}
		for step := 3; step < 5; step++ { // while frames wait, and are on their way
			f.Prefetch(step, clock.Never)
		}
	}
	if got := s.Wire().seen; got != 1<<5 {
		t.Errorf("the sender's wire has seen priorities %08b, want the one of its frames", got)
	}
	f.Advance(clock.Time(clock.Never - 1))
	if got := o.Wire().seen; got != 1<<0 { // untagged, and so of the default priority
		t.Errorf("the receiver's wire has seen priorities %08b, want the default", got)
	}
	if taken != 3 || f.Store.Frames() != 0 {
		t.Errorf("%d frames taken, %d left", taken, f.Store.Frames())
	}
	foresee()
	if s.Wire().seen|o.Wire().seen != 0 {
		t.Error("what was asked for is asked for again")
	}
}

// TestPort_Lines: what frames look at of a port begins where a line of memory does, so that it is on no more lines than it must be.
func TestPort_Lines(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("it is laid out for processors of 64 bits")
	}
	var p Port
	for name, at := range map[string]uintptr{"Port": unsafe.Sizeof(p), "class": unsafe.Sizeof(class{}), "queue": unsafe.Sizeof(queue{}),
		"group": unsafe.Sizeof(group{}), "sw": unsafe.Offsetof(p.sw), "urgent": unsafe.Offsetof(p.urgent),
		"scheduler": unsafe.Offsetof(p.scheduler), "cfg": unsafe.Offsetof(p.cfg)} {
		if at%line != 0 {
			t.Errorf("%s: %d, want a multiple of %d", name, at, line)
		}
	}
	if n := unsafe.Offsetof(p.seen) - unsafe.Offsetof(p.sw); n >= line {
		t.Errorf("what is looked at first has %d bytes", n)
	}
	if n := unsafe.Offsetof(p.cfg.Groups); n > line {
		t.Errorf("what frames look at of a configuration has %d bytes", n)
	}
}
