package packet

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
)

// theInterface is the interface of the rules: the loopback interface, by which the system tests programs.
const theInterface = 1

// intakeOf makes an Intake with an open gate that is attached nowhere.
func intakeOf(t *testing.T, r Rule) *Intake {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: loads programs")
	}
	i, err := openIntake(r, true)
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, os.ErrPermission) {
		t.Skipf("this system permits no programs: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.close)
	i.open(true)
	return i
}

// verdict runs an Intake's gate on a frame and returns what it decides.
func (i *Intake) verdict(t *testing.T, b []byte) int32 {
	t.Helper()
	v, err := i.gate.program.Run(&ebpf.RunOptions{Data: b})
	if err != nil {
		t.Fatal(err)
	}
	return int32(v)
}

// flights returns how many packets passed the gate and did not come to the filter.
func (i *Intake) flights() (n int) {
	for k := range processors {
		n += int(i.word(flightsAt + k*lineSize).Load())
	}
	return n
}

// land takes all packets for arrived at the filter.
func (i *Intake) land() {
	for k := range processors {
		i.word(flightsAt + k*lineSize).Store(0)
	}
}

// TestGate_TakesShortPacketsOfItsRule: the gate drops what it put into memory; it counts the rule's longer packets, which
// the filter will see; and it leaves everything else alone, also frames that are cut off.
func TestGate_TakesShortPacketsOfItsRule(t *testing.T) {
	put16 := func(at int, v uint16) func(b []byte) {
		return func(b []byte) { binary.BigEndian.PutUint16(b[at:], v) }
	}
	none := func([]byte) {}
	const takes, counts, leaves = 1, 2, 3
	for _, c := range []struct {
		name     string
		src, dst netip.Addr
		n        int
		change   func(b []byte)
		does     int
	}{
		{"IPv4, short", v4a, v4b, 20, none, takes},
		{"IPv4, the longest short", v4a, v4b, MostTaken, none, takes},
		{"IPv4, longer", v4a, v4b, MostTaken + 4, none, counts},
		{"IPv6, short", v6a, v6b, 20, none, takes},
		{"IPv6, the longest short", v6a, v6b, MostTaken, none, takes},
		{"IPv6, longer", v6a, v6b, MostTaken + 4, none, counts},
		{"IPv4, UDP length beyond the frame", v4a, v4b, 20, put16(38, 100), counts},
		{"IPv4, UDP length below its header", v4a, v4b, 20, put16(38, 7), counts},
		{"IPv4, to another port", v4a, v4b, 20, put16(36, 4792), leaves},
		{"IPv6, to another port", v6a, v6b, 20, put16(56, 53), leaves},
		{"IPv4, to another address", v4a, v4a, 20, none, leaves},
		{"IPv6, to another address", v6a, v6a, 20, none, leaves},
		{"IPv4, a fragment", v4a, v4b, 20, put16(20, 0x2000), leaves},
		{"IPv4, the last fragment", v4a, v4b, 20, put16(20, 0x0010), leaves},
		{"IPv4 with options", v4a, v4b, 20, func(b []byte) { b[14] = 0x46 }, leaves},
		{"IPv4, TCP", v4a, v4b, 20, func(b []byte) { b[23] = 6 }, leaves},
		{"IPv6 with an extension header", v6a, v6b, 20, func(b []byte) { b[20] = 60 }, leaves},
		{"of another Ethernet type", v4a, v4b, 20, put16(12, 0x0806), leaves},
		{"to another station", v4a, v4b, 20, func(b []byte) { copy(b, "\x02\x00\x00\x00\x00\x09") }, leaves},
		{"to all stations", v4a, v4b, 20, func(b []byte) { copy(b, "\xff\xff\xff\xff\xff\xff") }, leaves},
	} {
		b := framed(c.src, c.dst, c.n)
		copy(b, make([]byte, 6)) // the address of the loopback interface
		c.change(b)
		r := Rule{Addr: v4b, Port: 4791, Interface: theInterface}
		if !c.dst.Is4() {
			r.Addr = v6b
		}
		i := intakeOf(t, r)
		want := int32(tcxNext)
		if c.does == takes {
			want = tcxDrop
		}
		var d Datagram
		got := i.verdict(t, b)
		taken, flights := i.Next(&d), i.flights()
		if got != want || taken != (c.does == takes) || taken && len(d.Data) != c.n || (flights == 1) != (c.does == counts) {
			t.Errorf("%s: the gate says %d; in memory %v (%d bytes); %d counted", c.name, got, taken, len(d.Data), flights)
		}
		for n := r.udpAt(); n < r.udpAt()+eth.UDPLen; n++ { // the system refuses to test with less
			if got := i.verdict(t, b[:n:n]); got != tcxNext || i.Next(&d) {
				t.Errorf("%s: the gate says %d to its first %d bytes", c.name, got, n)
			}
		}
		i.land()
		if i.open(false); i.verdict(t, b) != tcxNext || i.Next(&d) {
			t.Errorf("%s: the gate takes it while it is shut", c.name)
		}
	}
}

// TestGate_TakesOnlyWhatNothingPrecedes: a short packet passes the gate while one before it is on its way to the filter,
// while a message that came before it has not been handed out, while the receiver sleeps, and while the memory is full.
func TestGate_TakesOnlyWhatNothingPrecedes(t *testing.T) {
	i := intakeOf(t, Rule{Addr: v4b, Port: 4791, Interface: theInterface})
	var d Datagram
	give := func(what string, n int, taken bool) {
		t.Helper()
		b := framed(v4a, v4b, n)
		copy(b, make([]byte, 6))
		if got := i.verdict(t, b); (got == tcxDrop) != taken {
			t.Fatalf("%s: the gate says %d to %d bytes", what, got, n)
		}
		if !taken {
			if i.Next(&d) {
				t.Fatalf("%s: %d bytes are in memory", what, len(d.Data))
			}
			return
		}
		if !i.Next(&d) || len(d.Data) != n || d.Segment != 0 {
			t.Fatalf("%s: %d of %d bytes are in memory", what, len(d.Data), n)
		}
		i.Free()
	}
	for range 3 * slots / 2 { // past the end of the memory
		give("nothing before it", 20, true)
	}
	give("long", MostTaken+4, false)
	give("a long packet on its way", 20, false)
	i.land()
	give("all have come", 24, true)
	i.word(queuedAt).Store(2)
	give("messages at the socket", 20, false)
	i.land()
	i.Handed(1)
	give("a message at the socket", 20, false)
	i.land()
	i.Handed(1)
	give("all messages handed out", 28, true)
	if !i.Sleep() {
		t.Error("the receiver may not sleep although nothing is in memory")
	}
	give("asleep", 20, false)
	i.land()
	i.Woken()
	give("awake", 20, true)
	for k := range slots {
		b := framed(v4a, v4b, 20+k%200)
		copy(b, make([]byte, 6))
		if i.verdict(t, b) != tcxDrop {
			t.Fatalf("packet %d finds no room", k)
		}
	}
	if i.Sleep() {
		t.Error("the receiver may sleep although packets are in memory")
	}
	i.Woken()
	b := framed(v4a, v4b, 20)
	copy(b, make([]byte, 6))
	if i.verdict(t, b) != tcxNext {
		t.Error("a packet was taken into full memory")
	}
	i.land()
	for k := range slots {
		if !i.Next(&d) || len(d.Data) != 20+k%200 {
			t.Fatalf("packet %d has %d bytes", k, len(d.Data))
		}
	}
	if i.verdict(t, b) != tcxNext {
		t.Error("a packet was taken before memory was given back")
	}
	i.land()
	i.Free()
	give("memory given back", 20, true)
	i.Stop()
	give("stopped", 20, false)
}

// TestIntake_ForgetsWhatIsLost: after a packet was lost between the gate and the filter, or a message at the socket, Tend
// finds out, and short packets are taken again.
func TestIntake_ForgetsWhatIsLost(t *testing.T) {
	i := intakeOf(t, Rule{Addr: v4b, Port: 4791, Interface: theInterface})
	b := framed(v4a, v4b, 20)
	copy(b, make([]byte, 6))
	now := time.Unix(1, 0)
	tend := func() {
		now = now.Add(tendTime)
		i.Tend(now)
	}
	takes := func() bool {
		var d Datagram
		return i.verdict(t, b) == tcxDrop && i.Next(&d)
	}
	i.word(queuedAt).Store(3)
	for range driftTimes / 2 {
		i.Missing(i.Messages())
		i.Missing(i.Messages() + 1) // one more may be on its way
	}
	if tend(); takes() {
		t.Error("a packet was taken although messages may be on their way")
	}
	i.land()
	if tend(); i.Messages() != 0 || !takes() {
		t.Errorf("%d messages are missed after they were lost", i.Messages())
	}
	for k := range processors { // one was lost at each
		i.word(flightsAt + k*lineSize).Store(1)
	}
	if takes() {
		t.Error("a packet was taken although another may be on its way")
	}
	i.land()
	for k := range processors {
		i.word(flightsAt + k*lineSize).Store(uint64(1 - 2*(k%2))) // or counted twice
	}
	for range 2 * driftTimes { // the first half saw them come, too
		tend()
	}
	if !takes() || i.flights() != 0 {
		t.Errorf("%d packets count as on their way after they were lost", i.flights())
	}
}

// TestGatesAreNoFilters: gates do not count as filters of the user's, neither the Port's own nor those of other
// Ports, and are removed with their Port.
func TestGatesAreNoFilters(t *testing.T) {
	systemtest.Mark(t)
	s, lo := ownSystem(t)
	first, second := intakeOf(t, Rule{Addr: v4b, Port: 4791, Interface: lo}), intakeOf(t, Rule{Addr: v4b, Port: 4792, Interface: lo})
	for _, i := range []*Intake{first, second} {
		if err := i.gate.attach(lo); err != nil {
			t.Skipf("this system attaches no programs: %v", err)
		}
	}
	if s.filtersIngress(lo, s.socket(), first.gate.id) || s.filtersIngress(lo, s.socket(), 0) {
		t.Error("gates count as filters")
	}
	first.close()
	first.close() // the second close does nothing
	if isGate(first.gate.id) || !isGate(second.gate.id) {
		t.Errorf("after the first gate was closed: first is a gate %v, second %v; want false, true", isGate(first.gate.id),
			isGate(second.gate.id))
	}
}
