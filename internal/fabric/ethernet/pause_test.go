package ethernet

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

func lossless(mask uint8) PortConfig {
	return PortConfig{Rate: 40e9, MTU: 1500, FlowControl: PriorityPause, Lossless: mask, Trust: TrustDSCP}
}

// TestPort_PauseFrames: a port whose group reaches Xoff sends a PFC frame of exactly that priority, again after half its time, and
// one of no time when the group is below Xon; byte for byte as a program written elsewhere makes them.
func TestPort_PauseFrames(t *testing.T) {
	const (
		xoff = "0180c2000001020000000a01880801010008000000000000ffff"
		xon  = "0180c2000001020000000a01880801010008"
		stop = "0180c2000001020000000a0188080001ffff"
		goOn = "0180c2000001020000000a0188080001"
	)
	for _, c := range []struct {
		flow      FlowControl
		xoff, xon string
	}{{PriorityPause, xoff, xon}, {GlobalPause, stop, goOn}} {
		in := PortConfig{Rate: 40e9, MTU: 1500, FlowControl: c.flow, Trust: TrustDSCP}
		group := Group{Xoff: 10_000, Xon: 4000}
		if in.Groups[0] = group; c.flow == PriorityPause {
			in.Lossless, in.Groups[3] = 1<<3, group
		}
		r := newRig(t, Config{MAC: eth.MAC{2, 0, 0, 0, 0x0a, 1}}, in, lossless(1<<3))
		r.control(1, eth.Pause{PerPriority: true, Enabled: 1 << 3, Quanta: [8]uint16{3: 0xffff}})
		for range 9 {
			r.receive(0, packet{from: 1, to: 2, class: 3 << 5, length: 1000})
		}
		r.drive(100 * microsecond)
		if got := r.left(0); len(got) != 0 {
			t.Fatalf("%d frames leave before Xoff", len(got))
		}
		r.receive(0, packet{from: 1, to: 2, class: 3 << 5, length: 1000})
		r.drive(r.now + 450*microsecond) // more than half of the 838.848 us
		r.control(1, eth.Pause{PerPriority: true, Enabled: 1 << 3})
		r.drive(r.now + 1000*microsecond)
		want := []string{c.xoff, c.xoff, c.xon}
		got := r.left(0)
		for i, b := range got {
			if w, _ := hex.DecodeString(want[i] + strings.Repeat("00", eth.PauseLen-len(want[i])/2)); !bytes.Equal(b, w) {
				t.Errorf("frame %d is\n% x, want\n% x", i, b, w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d pauses, want %d", len(got), len(want))
		}
		counted := r.sw.Port(0).Counters(r.now)
		p := counted.Global
		if c.flow == PriorityPause {
			p = counted.Priority[3].Pause
		}
		// It is paused from the tenth frame until six of them, 1,024 bytes each on the wire, have left after 450 us.
		if p.Sent != 2 || p.SentTime < 450*time.Microsecond || p.SentTime > 453*time.Microsecond {
			t.Errorf("counters %+v", p)
		}
		r.idle()
	}
}

// TestPort_Obeys: a pause stops exactly the priorities that it names, from the frame after the one on the line, for quanta of 512
// bit times of the port's rate; 0 quanta end it, and another pause replaces the time.
func TestPort_Obeys(t *testing.T) {
	r := newRig(t, Config{}, PortConfig{Rate: 400e9, Trust: TrustDSCP}, lossless(1<<3|1<<4))
	pause := func(enabled uint8, quanta uint16) {
		p := eth.Pause{PerPriority: true, Enabled: enabled}
		for i := range p.Quanta {
			p.Quanta[i] = quanta
		}
		r.control(1, p)
	}
	backlog := func(priority uint8, n int) {
		for range n {
			r.receive(0, packet{from: 1, to: 2, class: priority << 5, length: 1000})
		}
	}
	leaving := func(d clock.Time) (n [8]int) {
		r.drive(r.now + d)
		for _, b := range r.left(1) {
			n[b[15]>>5]++
		}
		return n
	}
	for i := range uint8(6) {
		backlog(i, 1000)
	}
	const each = 204.8 // ns
	got := leaving(1200 * each)
	for i, n := range got[:6] {
		if n < 198 || n > 202 {
			t.Errorf("priority %d: %d of 1200 frames before any pause, want 200", i, n)
		}
	}
	pause(1<<3|1<<5, 7000) // 89.6 us; 5 is not lossless here: it does not obey, and counts that
	got = leaving(400 * each)
	if got[3] > 1 || got[5] < 78 || got[4] < 78 {
		t.Errorf("while 3 is paused %v leave", got)
	}
	if c := r.sw.Port(1).Counters(r.now); c.Ignored != 1 || c.Priority[3].Pause.Received != 1 || c.Priority[5].Pause.Received != 0 {
		t.Errorf("counters %+v", c)
	}
	if here, _ := r.sw.Port(1).Paused(r.now); here != 1<<3 {
		t.Errorf("paused are %08b", here)
	}
	pause(1<<4, 0xffff)
	pause(1<<4, 0)
	if got = leaving(400 * each); got[4] < 60 {
		t.Errorf("after a pause of 0 quanta %v leave", got)
	}
	pause(1<<3, 0xffff)
	pause(1<<3, 10) // 128 ns
	if got = leaving(400 * each); got[3] < 60 {
		t.Errorf("after a pause that a shorter one replaced %v leave", got)
	}
	pause(1<<3|1<<4, 0xffff)
	r.drive(r.now + 838_847)
	r.left(1)
	waiting, _ := r.sw.Port(1).Queued(3)
	if got = leaving(1); got[3]+got[4] != 1 || waiting == 0 {
		t.Errorf("when 838.848 us are over %v leave", got)
	}
	if c := r.sw.Port(1).Counters(r.now).Priority[4].Pause; c.ReceivedTime != 838848*time.Nanosecond || c.Received != 2 {
		t.Errorf("counters %+v", c)
	}
	r.drive(clock.Time(time.Second))
	r.idle()
}

// TestPort_ObeysGlobalPause: all priorities are paused, and the port's own pauses leave nevertheless.
func TestPort_ObeysGlobalPause(t *testing.T) {
	out := PortConfig{Rate: 40e9, FlowControl: GlobalPause, Groups: [8]Group{{Xoff: 2000}}}
	r := newRig(t, Config{}, PortConfig{Rate: 40e9}, out)
	r.control(1, eth.Pause{Quanta: [8]uint16{1000}})
	for range 5 {
		r.receive(0, packet{from: 1, to: 2, length: 1000})
		r.receive(1, packet{from: 2, to: 3, length: 1000})
	}
	r.sw.Port(0).SetUp(r.now, false) // what came in at port 1 must wait no longer
	r.drive(microsecond)
	for _, b := range r.left(1) {
		if eth.EtherType(b[12])<<8|eth.EtherType(b[13]) != eth.TypeMACControl {
			t.Errorf("% x leaves while the port is paused", b)
		}
	}
	r.drive(20 * microsecond)
	if n, _ := r.sw.Port(1).Queued(0); n != 0 {
		t.Errorf("%d frames wait after the pause", n)
	}
	if c := r.sw.Port(1).Counters(r.now).Global; c.Received != 1 || c.ReceivedTime != 12800*time.Nanosecond || c.Sent == 0 {
		t.Errorf("counters %+v", c)
	}
	r.idle()
}

// TestSwitch_Storm: a queue that is paused without a break while frames wait is reported once, by its port and priority.
func TestSwitch_Storm(t *testing.T) {
	r := newRig(t, Config{Storm: time.Millisecond}, PortConfig{Trust: TrustDSCP}, lossless(1<<3|1<<4))
	for range 5 {
		r.control(1, eth.Pause{PerPriority: true, Enabled: 1<<3 | 1<<4, Quanta: [8]uint16{3: 0xffff, 4: 0xffff}})
		r.receive(0, packet{from: 1, to: 2, class: 3 << 5, length: 1000})
		r.drive(r.now + 400*microsecond)
	}
	if s, ok := r.sw.Storm(); !ok || s != (Storm{Port: 1, Priority: 3}) {
		t.Errorf("storm %+v, %v", s, ok)
	}
	if s, ok := r.sw.Storm(); ok {
		t.Errorf("another storm %+v", s)
	}
	if c := r.sw.Port(1).Counters(r.now); c.Priority[3].Storms != 1 || c.Priority[4].Storms != 0 {
		t.Errorf("counters %+v", c)
	}
	r.drive(clock.Time(time.Second))
	r.idle()
}

// FuzzSwitch_Control: whatever a MAC control frame has, it goes nowhere, and a switch goes on.
func FuzzSwitch_Control(f *testing.F) {
	f.Add([]byte{1, 1, 0, 8, 0, 0, 0, 0, 0, 0, 255, 255}, uint8(2))
	f.Add([]byte{0, 1, 255, 255}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, flow uint8) {
		c := PortConfig{FlowControl: FlowControl(flow % 3)}
		if c.FlowControl == PriorityPause {
			c.Lossless = 1 << 3
		}
		r := newRig(t, Config{}, PortConfig{}, c)
		control := append((&eth.Ethernet{Dst: eth.PauseMAC, Src: stationMAC(9), Type: eth.TypeMACControl}).Append(nil), b...)
		if at := r.store.Put(control, 0); at != 0 {
			r.sw.Receive(0, 1, at)
		}
		r.receive(0, packet{from: 1, to: 2})
		r.drive(clock.Time(time.Hour))
		if got := r.left(1); len(got) != 1 || len(r.left(0)) != 0 {
			t.Errorf("%d frames leave", len(got))
		}
		r.idle()
	})
}
