package ethernet

import (
	"fmt"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/pause"
	"pgregory.net/rapid"
)

// TestFabric_LosesNothing: with PFC no frame is lost, duplicated or reordered within a priority, whatever the senders, lengths,
// delays, priorities and thresholds are, and however slow the receiver is; in the end nothing is left in any buffer.
func TestFabric_LosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLoad(nil)
		l.t = t
		port := PortConfig{Rate: rapid.SampledFrom([]uint64{1e9, 10e9, 100e9}).Draw(t, "rate"), MTU: 1500, Trust: TrustDSCP,
			Delay: time.Duration(rapid.IntRange(0, 3000).Draw(t, "delay")), FlowControl: PriorityPause, Lossless: 0xff}
		for i := range port.Groups {
			port.Groups[i].Xoff = rapid.SampledFrom([]int{0, 1, 1500, 10_000}).Draw(t, "xoff")
			port.Groups[i].Xon = rapid.SampledFrom([]int{0, 1, 3000}).Draw(t, "xon")
			port.Queues[i].Strict = rapid.Bool().Draw(t, "strict")
			port.Queues[i].Weight = uint8(rapid.IntRange(0, 100).Draw(t, "weight"))
			port.Queues[i].ECN.Kmax = rapid.IntRange(0, 3000).Draw(t, "kmax")
		}
		if rapid.Bool().Draw(t, "global") {
			port.FlowControl, port.Lossless = GlobalPause, 0
		}
		senders := rapid.IntRange(1, 8).Draw(t, "senders")
		ports := make([]PortConfig, senders+1)
		for i := range ports {
			ports[i] = port
		}
		sw := l.toSwitch(Config{}, ports)
		to := l.station(StationConfig{Wire: port, Take: rapid.SampledFrom([]uint64{0, 200e6, 5e9}).Draw(t, "take")}, sw, 0)
		for i := range senders {
			from := l.station(StationConfig{Wire: port}, sw, i+1)
			for range rapid.IntRange(1, 3).Draw(t, "flows") {
				l.add(flow{from: from, to: to, priority: uint8(rapid.IntRange(0, 7).Draw(t, "priority")), ecn: 2,
					length: rapid.IntRange(64, 1514).Draw(t, "length"), frames: rapid.IntRange(1, 60).Draw(t, "frames")})
			}
		}
		l.run(time.Second)
		l.complete()
	})
}

// TestHeadroom: with the headroom of the formula nothing is lost while 2 to 63 senders at line rate meet at one port, and each has
// its share; with less than what is on its way some is, and it is counted.
func TestHeadroom(t *testing.T) {
	port := PortConfig{Rate: 40e9, Delay: 2 * time.Microsecond, MTU: 1500, Trust: TrustDSCP, FlowControl: PriorityPause, Lossless: 1 << 3}
	port.Groups[3] = Group{Xoff: 3000}
	run := func(senders int, port PortConfig, lossy bool) *load {
		l, to, from := star(t, senders, Config{}, port, StationConfig{Wire: port})
		l.lossy = lossy
		for _, n := range from {
			l.add(flow{from: n, to: to, priority: 3, length: 1514, frames: 12000 / senders})
		}
		l.run(time.Second)
		return l
	}
	for _, senders := range []int{2, 3, 4, 8, 16, 32, 63} {
		t.Run(fmt.Sprint(senders), func(t *testing.T) {
			l := run(senders, port, false)
			l.t = t
			l.complete()
			paused := uint64(0)
			for i := range senders {
				c := l.Switch(0).Port(i + 1).Counters(l.now).Priority[3]
				paused += c.Pause.Sent
				if room := Headroom(port.Rate, port.Delay, port.MTU); c.PeakHeadroom > room+1518 {
					t.Errorf("%d bytes of the headroom of %d were used at port %d", c.PeakHeadroom, room, i+1)
				}
			}
			if paused == 0 {
				t.Error("no sender was paused")
			}
		})
	}
	short := port
	short.Groups[3].Headroom = Headroom(port.Rate, 0, port.MTU)
	l := run(4, short, true)
	if n, how := l.drops(); n == 0 {
		t.Error("nothing is lost although the headroom lacks what is on the link")
	} else {
		t.Log(how)
	}
	l.empty()
}

// TestHeadroom_Links: at links of all kinds nothing is lost with the headroom of the formula, while the pauses wait for frames of the
// other direction; with half of that, and of the frame that reaches Xoff, something is.
func TestHeadroom_Links(t *testing.T) {
	for _, rate := range []uint64{1e9, 10e9, 40e9, 100e9, 400e9} {
		for _, metres := range []float64{1, 100, 2000} {
			for _, mtu := range []int{1500, 9000} {
				port := PortConfig{Rate: rate, Delay: pause.Cable(metres), MTU: mtu, Trust: TrustDSCP, FlowControl: PriorityPause,
					Lossless: 1 << 3}
				formula, longest := Headroom(rate, port.Delay, mtu), port.MTU+18
				frames := 200 + 2*formula/mtu
				for _, part := range []int{1, 2} {
					port.Groups[3] = Group{Xoff: 3000, Headroom: (formula+longest)/part - longest}
					l, to, from := star(t, 8, Config{}, port, StationConfig{Wire: port})
					l.lossy = true
					for i, n := range from[:4] {
						l.add(flow{from: n, to: to, priority: 3, length: mtu + 14, frames: frames})
						l.add(flow{from: from[4+i], to: n, priority: 4, length: mtu + 14, frames: frames})
					}
					l.run(time.Second)
					lost := uint64(0)
					for i := range l.Switch(0).Ports() {
						lost += l.Switch(0).Port(i).Counters(l.now).Priority[3].HeadroomDrops
					}
					if (lost > 0) != (part > 1) {
						t.Errorf("%d Gb/s, %v m, MTU %d: with 1/%d of %d bytes %d frames are lost", rate/1e9, metres, mtu, part, formula, lost)
					}
				}
			}
		}
	}
}

// TestHeadroom_TwoSwitches: 64 senders at two switches lose nothing on their way to one receiver; the switch in between is paused
// itself, and pauses its senders.
func TestHeadroom_TwoSwitches(t *testing.T) {
	port := PortConfig{Rate: 40e9, Delay: time.Microsecond, MTU: 1500, Trust: TrustDSCP, FlowControl: PriorityPause, Lossless: 1 << 3}
	l := newLoad(t)
	ports := make([]PortConfig, 34)
	for i := range ports {
		ports[i] = port
	}
	first, second := l.toSwitch(Config{}, ports), l.toSwitch(Config{MAC: stationMAC(0xff)}, ports)
	l.must(l.Connect(End{first, 33}, End{second, 33}))
	to := l.station(StationConfig{Wire: port, Take: 20e9}, first, 32)
	l.learn(second, 33, to)
	for i := range 64 {
		from := l.station(StationConfig{Wire: port}, i/32, i%32)
		l.add(flow{from: from, to: to, priority: 3, length: 1514, frames: 200})
	}
	l.run(time.Second)
	l.complete()
	if c := l.Switch(second).Port(33).Counters(l.now).Priority[3].Pause; c.Received == 0 || c.ReceivedTime == 0 {
		t.Errorf("the second switch was not paused: %+v", c)
	}
}

// TestFabric_OneHopWrong: where one sender does not obey the priority that the switch pauses, its frames are lost and counted, and
// nobody else's; with all hops right none are.
func TestFabric_OneHopWrong(t *testing.T) {
	port := PortConfig{Rate: 40e9, Delay: time.Microsecond, MTU: 1500, Trust: TrustDSCP, FlowControl: PriorityPause, Lossless: 1 << 3}
	port.Groups[3] = Group{Xoff: 20_000}
	for _, wrong := range []bool{false, true} {
		l, to, from := star(t, 3, Config{}, port, StationConfig{Wire: port})
		if wrong {
			other := l.port(End{int(from[0]), wire})
			l.must(other.SetPFC(0, 1<<4))
			l.lossy = true
		}
		for _, n := range from {
			l.add(flow{from: n, to: to, priority: 3, length: 1514, frames: 2000})
		}
		l.run(time.Second)
		bad, good := l.Switch(0).Port(1).Counters(l.now).Priority[3], l.Switch(0).Port(2).Counters(l.now).Priority[3]
		if (bad.HeadroomDrops > 0) != wrong || good.HeadroomDrops > 0 {
			t.Errorf("wrong %v: %d frames of the sender are lost, and %d of another", wrong, bad.HeadroomDrops, good.HeadroomDrops)
		}
		if ignored := l.port(End{int(from[0]), wire}).Counters(l.now).Ignored; (ignored > 0) != wrong {
			t.Errorf("wrong %v: %d pauses were ignored", wrong, ignored)
		}
		if !wrong {
			l.complete()
		}
		l.empty()
	}
}

// TestFabric_Fair: senders behind a paused switch have equal shares, within 5 %.
func TestFabric_Fair(t *testing.T) {
	port := PortConfig{Rate: 40e9, Delay: time.Microsecond, MTU: 1500, Trust: TrustDSCP, FlowControl: PriorityPause, Lossless: 1 << 3}
	l, to, from := star(t, 16, Config{}, port, StationConfig{Wire: port})
	for _, n := range from {
		l.add(flow{from: n, to: to, priority: 3, length: 1514, frames: 1 << 30})
	}
	l.run(10 * time.Millisecond)
	all := 0
	for _, n := range l.bytes {
		all += n
	}
	if rate := float64(all) * 8 / 10e-3; rate < 0.97*40e9 {
		t.Errorf("%.3g b/s arrive", rate)
	}
	for n, b := range l.bytes {
		if share := float64(b) * 16 / float64(all); share < 0.95 || share > 1.05 {
			t.Errorf("sender %d has %.3f of its share", n, share)
		}
	}
}
