package lan

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/eth"
)

// A host's end of its link does about pauses what the adapter's port does: what waits there for a paused priority stays there, and
// nothing is lost at the switch. An adapter that obeys none loses frames. When it is pulled out nothing of that remains.
func TestHostFollowsTheAdaptersPauses(t *testing.T) {
	for _, c := range []struct {
		name     string
		flow     ethernet.FlowControl
		obeys    pause.Scope
		lossless bool
	}{
		{"PFC", ethernet.PriorityPause, pause.Only(1 << 3), true},
		{"PFC of another priority", ethernet.PriorityPause, pause.Only(1 << 4), false},
		{"global pauses", ethernet.GlobalPause, pause.Whole, true},
		{"PFC where the switch has global pauses", ethernet.GlobalPause, pause.Only(1 << 3), false},
		{"none", ethernet.PriorityPause, pause.Scope{}, false},
	} {
		port := ethernet.PortConfig{FlowControl: c.flow}
		if c.flow == ethernet.PriorityPause {
			port.Lossless = 1 << 3
		}
		for i := range port.Groups {
			port.Groups[i] = ethernet.Group{Xoff: 60_000}
		}
		b := star(t, true, port, 4e9, 1e9)
		from, to := b.plug("h0"), b.plug("h1")
		from.SetPauses(b.now, c.obeys, c.obeys)
		b.learned(from, to)
		b.flood(from, to, 50*time.Millisecond)
		s := b.State(b.now, ethernet.End{Node: 2, Port: 0})
		if lost := s.HeadroomDrops + s.BufferDrops; (lost == 0) != c.lossless || s.PausesSent == 0 {
			t.Errorf("%s: %d frames lost, %d pauses sent", c.name, lost, s.PausesSent)
		}
		from.Close(b.now)
		if o, a := b.fabric.Station(0).Wire().Pauses(); o.Mode != pause.None || a.Mode != pause.None {
			t.Errorf("%s: without an adapter the host obeys %v and sends %v", c.name, o, a)
		}
	}
}

// flood sends frames of priority 3 for a time, as fast as there is room, and takes what arrives.
func (b *bench) flood(from, to *Jack, d time.Duration) {
	p := packet(0, 1, 3<<3, 4000)
	for until := b.now.Add(d); b.now < until; {
		for from.Transmit(b.now, p) {
		}
		b.to(b.now.Add(50 * time.Microsecond))
		b.drain(to)
	}
}

// A host's end that was told by file or by command what to do does that, whatever the adapter does, until it is told to follow.
func TestHostWithPausesOfItsOwn(t *testing.T) {
	b := star(t, true, ethernet.PortConfig{}, 1e9)
	j := b.plug("h0")
	wire := func() pause.Scope { obeys, _ := b.fabric.Station(0).Wire().Pauses(); return obeys }
	j.SetPauses(b.now, pause.Only(1<<3), pause.Only(1<<3))
	for _, c := range []struct {
		command string
		want    pause.Scope
	}{{"pfc h0 none", pause.Scope{}}, {"pfc h0 5", pause.Only(1 << 5)}, {"pfc h0 adapter", pause.Only(1 << 3)}} {
		b.do(c.command)
		if got := wire(); got != c.want {
			t.Errorf("%s: %v, want %v", c.command, got, c.want)
		}
	}
	b.do("pfc h0 none")
	if j.SetPauses(b.now, pause.Whole, pause.Whole); wire().Mode != pause.None {
		t.Errorf("the adapter changes what the command has set to %v", wire())
	}
}

// What the adapter asks for and what its end of the link does join: one does not end what the other wants, and an adapter that says
// nothing more is forgotten.
func TestPausesOfTheAdapterJoinThoseOfItsEnd(t *testing.T) {
	port := ethernet.PortConfig{FlowControl: ethernet.PriorityPause, Lossless: 1 << 3}
	b := star(t, true, port, 1e9, 1e9)
	from, to := b.plug("h0"), b.plug("h1")
	to.SetPauses(b.now, pause.Only(1<<3), pause.Only(1<<3))
	b.learned(from, to)
	ask := func(quanta uint16) {
		f := eth.Pause{Src: mac(1), PerPriority: true, Enabled: 1 << 3}
		f.Quanta[3] = quanta
		to.Transmit(b.now, f.Append(nil))
	}
	silent := func(when string, want bool) {
		t.Helper()
		b.drain(to)
		from.Transmit(b.now, packet(0, 1, 3<<3, 1000))
		b.to(b.now.Add(100 * time.Microsecond))
		if n, _ := b.drain(to); (n == 0) != want {
			t.Errorf("%s %d frames arrive", when, n)
		}
	}
	ask(0xffff) // 33.6 ms at the rate of the link
	b.to(b.now.Add(10 * time.Microsecond))
	silent("while the adapter asks", true)
	b.do("take h1 none") // its end fills
	for range 3000 {
		from.Transmit(b.now, packet(0, 1, 3<<3, 4000))
		b.to(b.now.Add(10 * time.Microsecond))
	}
	ask(0)
	b.to(b.now.Add(time.Millisecond))
	for range 400 {
		for from.Transmit(b.now, packet(0, 1, 3<<3, 4000)) {
		}
		b.to(b.now.Add(100 * time.Microsecond))
	}
	ask(0xffff)
	b.to(b.now.Add(10 * time.Microsecond))
	b.do("take h1 all")
	for range 100 { // the end is empty, and goes on
		b.to(b.now.Add(10 * time.Microsecond))
		b.drain(to)
	}
	if s := b.State(b.now, ethernet.End{Node: 2, Port: 1}); len(s.Paused) != 1 || s.HeadroomDrops+s.QueueDrops != 0 {
		t.Errorf("the switch is paused at %v, and has lost %d", s.Paused, s.HeadroomDrops+s.QueueDrops)
	}
	silent("while the adapter asks and its end does not", true)
	b.to(b.now.Add(60 * time.Millisecond))
	silent("after the adapter has said nothing more", false)
	if s := b.State(b.now, ethernet.End{Node: 1}); s.PausesSent == 0 {
		t.Error("the pauses of the adapter are not counted at its end")
	}
}
