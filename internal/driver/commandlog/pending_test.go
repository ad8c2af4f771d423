package commandlog

import (
	"testing"

	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// TestGates: what commands wait at. A fault of the adapter holds up those of everybody, a virtual function's own those of its programs;
// the reset of a virtual function lets its commands go, and no others; the adapter's restart lets all go.
func TestGates(t *testing.T) {
	l := New(1)
	a := l.adapters[0]
	waits := func(vf string) (gates []<-chan struct{}) {
		gate, own := a.pending.gates(vf)
		for _, g := range []chan struct{}{gate, own} {
			if g != nil {
				gates = append(gates, g)
			}
		}
		return gates
	}
	open := func(gates []<-chan struct{}) bool {
		for _, g := range gates {
			select {
			case <-g:
				return true
			default:
			}
		}
		return len(gates) == 0
	}
	check := func(when string, gates []<-chan struct{}, want bool) {
		t.Helper()
		if open(gates) != want {
			t.Errorf("%s: the way is open: %v, want %v", when, !want, want)
		}
	}
	l.HangTenant(0, "red")
	red, blue, pf := waits("red"), waits("blue"), waits("")
	check("red hangs, red", red, false)
	check("red hangs, blue", blue, true)
	check("red hangs, the adapter's", pf, true)
	l.ReleaseTenant(0, "red")
	check("red was reset, what it waited for", red, true)
	check("red was reset, its next", waits("red"), true)

	l.Hang(0)
	red, blue, pf = waits("red"), waits("blue"), waits("")
	l.ReleaseTenant(0, "red")
	check("the adapter hangs and red was reset, red", red, true)
	check("the adapter hangs and red was reset, blue", blue, false)
	check("the adapter hangs and red was reset, the adapter's", pf, false)
	check("the adapter hangs and red was reset, red's next", waits("red"), false)
	l.HangTenant(0, "blue")
	later := waits("blue")
	l.Release(0)
	for when, gates := range map[string][]<-chan struct{}{"blue": blue, "blue, with a fault of its own": later, "the adapter's": pf,
		"the next": waits("blue")} {
		check("the adapter was restarted, "+when, gates, true)
	}
}

// TestReturnsOnceReleased: a command at a closed gate is pending until that opens, and then it is carried out.
func TestReturnsOnceReleased(t *testing.T) {
	l := New(1)
	l.HangTenant(0, "red")
	began := make(chan uint32)
	go func() { began <- l.adapters[0].begin(proto.OpAllocPD, "red") }()
	for len(l.Pending(0)) == 0 {
		select {
		case <-began:
			t.Fatal("it has not waited")
		default:
		}
	}
	l.ReleaseTenant(0, "red")
	l.adapters[0].end(<-began)
	if n := l.Pending(0); len(n) != 0 {
		t.Errorf("pending: %v", n)
	}
}
